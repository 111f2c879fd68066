"""The JSON Schema says what the loader takes."""

import json

from kael.specs import keys
from kael.specs.keys import json_schema
from kael.specs.yaml_loader import load_bytes


def test_schema_is_json_and_closed() -> None:
    schema = json.loads(json.dumps(json_schema()))
    spec = schema["$defs"]["spec"]
    assert spec["required"] == ["inputs", "output"]
    assert spec["additionalProperties"] is False
    assert set(spec["properties"]) == set(keys.SPEC)
    assert all(entry["description"] for entry in spec["properties"].values())


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    schema = json_schema()
    text = json.dumps(schema)
    for part in text.split('"#/$defs/')[1:]:
        assert part.split('"')[0] in schema["$defs"]


def test_every_key_of_the_table_is_read() -> None:
    # A value of the wrong kind for every key: one that is silently ignored would load.
    for key in keys.SPEC:
        text = f"{{inputs: {{x: 1}}, output: x, {key}: {{q: {{z: [1]}}}}}}"
        if key in ("inputs", "output"):
            text = f"{{inputs: {{x: 1}}, output: x, {key}: 1}}"
        assert load_bytes(text.encode(), "s", "f.yaml").errors, key
    for table, key in ((keys.EXPECT, "expect"), (keys.GRADCHECK, "gradcheck")):
        for inner in table:
            text = f"{{inputs: {{x: 1}}, output: x, {key}: {{value: 1, {inner}: [[], 1]}}}}"
            assert load_bytes(text.encode(), "s", "f.yaml").errors, inner
    for inner in keys.INPUT:
        text = f"{{inputs: {{x: {{{inner}: {{}}}}}}, output: x}}"
        assert load_bytes(text.encode(), "s", "f.yaml").errors, inner

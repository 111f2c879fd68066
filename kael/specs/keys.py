"""The keys of the YAML format: one table, from which unknown keys are told and the schema is made.

What a key's value means, and how it is read, is `yaml_loader.py`'s.
"""

from typing import Any, NamedTuple

from kael.specs.inputs import INITS
from kael.specs.model import MODES


class Key(NamedTuple):
    """One key: its JSON Schema and what it is for."""

    schema: dict[str, Any]
    doc: str


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
FLAG: dict[str, Any] = {"type": "boolean"}
NAMES: dict[str, Any] = {"type": "array", "items": TEXT}
ARRAY: dict[str, Any] = {"$ref": "#/$defs/array"}
EXPRESSION: dict[str, Any] = {"type": ["string", "number", "boolean"]}
REASON: dict[str, Any] = {"type": ["string", "boolean"]}


def each(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping from names to values of one kind."""
    return {"type": "object", "additionalProperties": schema}


def table(name: str) -> dict[str, Any]:
    """Return the schema that refers to a table of keys."""
    return {"$ref": f"#/$defs/{name}"}


SPEC: dict[str, Key] = {
    "name": Key(TEXT, "the spec's name; the file's stem unless given"),
    "description": Key(TEXT, "free text"),
    "tags": Key(NAMES, "words to select by"),
    "inputs": Key(each(table("input")), "the inputs, in order: a value, or a mapping"),
    "let": Key(each(EXPRESSION), "named intermediates, evaluated in order"),
    "output": Key(EXPRESSION, "the formula"),
    "upstream": Key(ARRAY, "upstream gradient of a non-scalar output: ones, randn or a value"),
    "expect": Key(table("expect"), "golden values of the output and of gradients"),
    "derivatives": Key(each(EXPRESSION), "hand-derived gradients, by input"),
    "gradcheck": Key(table("gradcheck"), "options of the check"),
    "xfail": Key(REASON, "why the check is known not to hold; passing is then a failure"),
    "skip": Key(REASON, "why the spec is not checked"),
    "cases": Key(each(each({})), "the same formula at other inputs, by name"),
}
INPUT: dict[str, Key] = {
    "value": Key(ARRAY, "a number or nested lists of numbers"),
    "shape": Key({"anyOf": [COUNT, {"type": "array", "items": COUNT}]}, "the shape to draw"),
    "init": Key({"enum": list(INITS)}, "how values are drawn"),
    "low": Key(NUMBER, "lowest value of uniform"),
    "high": Key(NUMBER, "highest value of uniform"),
    "seed": Key({"type": "integer"}, "a seed of the input's own"),
    "file": Key(TEXT, "a .npy, .npz:key or .csv file, relative to the spec"),
    "dtype": Key(TEXT, "float64, float32, int64, bool …"),
    "requires_grad": Key(FLAG, "whether the input takes part in the graph"),
}
EXPECT: dict[str, Key] = {
    "value": Key(ARRAY, "the output's value"),
    "grad": Key(each({"anyOf": [ARRAY, {"type": "null"}]}), "gradients, by input"),
    "atol": Key(NUMBER, "absolute tolerance, 1e-6 unless given"),
    "rtol": Key(NUMBER, "relative tolerance, 1e-5 unless given"),
}
GRADCHECK: dict[str, Key] = {
    "eps": Key(NUMBER, "the first step"),
    "atol": Key(NUMBER, "absolute tolerance"),
    "rtol": Key(NUMBER, "relative tolerance"),
    "seed": Key(COUNT, "seed of the projection"),
    "mode": Key({"enum": list(MODES)}, "how differences are taken"),
    "inputs": Key(NAMES, "the inputs to check; all unless given"),
    "numeric": Key(FLAG, "false: claims and expectations only"),
    "samples": Key(COUNT, "how many drawn input sets to check beside the given one"),
}
CASE: dict[str, Key] = {
    "inputs": Key(each(table("input")), "inputs that differ from the spec's"),
    "expect": Key(table("expect"), "golden values at these inputs"),
}
FILE: dict[str, Key] = {
    "specs": Key({"type": "array", "items": table("spec")}, "the specs of the file"),
    "defaults": Key({"type": "object"}, "keys merged under each spec"),
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a YAML document of specs.

    >>> sorted(json_schema()["$defs"]["expect"]["properties"])
    ['atol', 'grad', 'rtol', 'value']
    """
    definitions = {
        "array": {
            "anyOf": [
                {"type": ["number", "boolean", "string"]},
                {"type": "array", "items": table("array")},
            ]
        },
        "input": {"anyOf": [table("array"), described(INPUT)]},
        "expect": described(EXPECT),
        "gradcheck": described(GRADCHECK),
        "spec": described(SPEC, required=["inputs", "output"]),
    }
    # Under `specs:` a missing key may come from the defaults.
    listed = described(SPEC)
    several = described(FILE, required=["specs"])
    several["properties"]["specs"]["items"] = listed
    several["properties"]["defaults"] = listed
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kael spec",
        "anyOf": [table("spec"), several],
        "$defs": definitions,
    }


def described(keys: dict[str, Key], required: list[str] | None = None) -> dict[str, Any]:
    """Return the schema of a mapping with a table of keys and no others."""
    properties = {name: {**key.schema, "description": key.doc} for name, key in keys.items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["additionalProperties"] = False
    return schema | ({"required": required} if required else {})

"""The computation of all-MiniLM-L6-v2 written down as an ONNX graph, from its weights alone.

Neither torch nor transformers is needed. The graph holds everything from token ids to the finished
vector: BERT's encoder, the mean over the tokens that are not padding, and the L2 norm. Inputs are
`input_ids` and `attention_mask` [batch, length] (int64), the output is `vectors` [batch, 384].

Run as a program of its own (`minilm_graph.py WEIGHTS CONFIG TARGET`), once for each home: writing
it takes two seconds, most of them inside calls that let no other thread run, and half a gigabyte.
It imports nothing of MIRA, so that the program starts quickly.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

#: The first in which Gelu and LayerNormalization are each a single node.
OPSET, IR_VERSION = 20, 10
#: What is added to the attention of padding: its share of a softmax is zero in float32.
MASKED = -1e9

Weights = Mapping[str, NDArray[Any]]


def graph(weights: Weights, config: Mapping[str, Any]) -> bytes:
    """The serialised graph for the weights and the config.json of a BERT of this form."""
    return _Graph(weights, config).serialised()


class _Graph:
    """Nodes and constants in the order in which they are needed. Values go by their names."""

    def __init__(self, weights: Weights, config: Mapping[str, Any]) -> None:
        self._weights = weights
        self._config = config
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._width: int = config["hidden_size"]
        self._heads: int = config["num_attention_heads"]

    def serialised(self) -> bytes:
        mask = self._op("Cast", "attention_mask", to=TensorProto.FLOAT)
        bias = self._op("Mul", self._op("Sub", self._floats(1.0), mask), self._floats(MASKED))
        bias = self._op("Unsqueeze", bias, self._ints(1, 2))  # [batch, 1, 1, length]
        x = self._embeddings()
        for layer in range(self._config["num_hidden_layers"]):
            x = self._layer(x, bias, f"encoder.layer.{layer}.")
        self._op("LpNormalization", self._mean(x, mask), output="vectors", axis=-1, p=2)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", self._width])
        made = helper.make_graph(self._nodes, "minilm", inputs, [output], self._constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(made, opset_imports=opset, ir_version=IR_VERSION)
        serialised: bytes = model.SerializeToString()
        onnx.checker.check_model(serialised)
        return serialised

    def _embeddings(self) -> str:
        """Words, positions from 0 on, and the token type, which is 0 throughout."""
        length = self._op("Gather", self._op("Shape", "input_ids"), self._ints(1))
        positions = self._op(
            "Slice", self._weight("embeddings.position_embeddings"), self._ints(0), length
        )
        kind = self._constant(self._weights["embeddings.token_type_embeddings.weight"][0])
        words = self._op("Gather", self._weight("embeddings.word_embeddings"), "input_ids")
        x = self._op("Add", words, self._op("Add", positions, kind))
        return self._norm(x, "embeddings.LayerNorm")

    def _layer(self, x: str, bias: str, prefix: str) -> str:
        attended = self._linear(self._attention(x, bias, prefix), prefix + "attention.output.dense")
        x = self._norm(self._op("Add", attended, x), prefix + "attention.output.LayerNorm")
        inner = self._op("Gelu", self._linear(x, prefix + "intermediate.dense"))
        outer = self._linear(inner, prefix + "output.dense")
        return self._norm(self._op("Add", outer, x), prefix + "output.LayerNorm")

    def _attention(self, x: str, bias: str, prefix: str) -> str:
        size = self._width // self._heads
        by_head, whole = self._ints(0, 0, self._heads, size), self._ints(0, 0, self._width)
        query, key, value = (
            self._op("Reshape", self._linear(x, f"{prefix}attention.self.{name}"), by_head)
            for name in ("query", "key", "value")
        )
        query = self._op("Transpose", query, perm=[0, 2, 1, 3])
        key = self._op("Transpose", key, perm=[0, 2, 3, 1])
        value = self._op("Transpose", value, perm=[0, 2, 1, 3])
        scores = self._op("Mul", self._op("MatMul", query, key), self._floats(size**-0.5))
        shares = self._op("Softmax", self._op("Add", scores, bias), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self._op("Reshape", mixed, whole)

    def _mean(self, x: str, mask: str) -> str:
        """The mean over the tokens that are not padding."""
        weight, axis = self._op("Unsqueeze", mask, self._ints(2)), self._ints(1)
        total = self._op("ReduceSum", self._op("Mul", x, weight), axis, keepdims=0)
        count = self._op("ReduceSum", weight, axis, keepdims=0)
        return self._op("Div", total, self._op("Max", count, self._floats(1e-9)))

    def _linear(self, x: str, name: str) -> str:
        matrix = self._constant(self._weights[name + ".weight"].T)
        return self._op("Add", self._op("MatMul", x, matrix), self._weight(name, "bias"))

    def _norm(self, x: str, name: str) -> str:
        return self._op(
            "LayerNormalization", x, self._weight(name), self._weight(name, "bias"),
            axis=-1, epsilon=self._config["layer_norm_eps"],
        )  # fmt: skip

    def _op(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"value{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _weight(self, name: str, part: str = "weight") -> str:
        return self._constant(self._weights[f"{name}.{part}"])

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _floats(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def _constant(self, value: NDArray[Any]) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name


def main(weights: str, config: str, target: str) -> None:
    made = graph(load_file(weights), json.loads(Path(config).read_text()))
    with Path(target).open("wb") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The index of torch's generated code, on a small text and on the torch that is installed."""

import json
from pathlib import Path

import torch

from kopt.actors.build.headers import NATIVE, OVERLAID, write_headers, write_index

BODY = """
class Tensor {
  // Tensor * add(Tensor b);
  at::Tensor add(const at::Tensor & other, const at::Scalar & alpha=1) const;
  at::Tensor & add_(const at::Tensor & other) const;
  at::Tensor add(const at::Scalar & other) const;
};
inline at::Tensor Tensor::add(const at::Tensor & other, const at::Scalar & alpha) const {
    return at::_ops::add_Tensor::call(const_cast<Tensor&>(*this), other, alpha);
}
inline at::Tensor & Tensor::add_(const at::Tensor & other) const {
    return at::_ops::add__Tensor::call(const_cast<Tensor&>(*this), other, alpha);
}
inline at::Tensor Tensor::add(const at::Scalar & other) const {
    return at::_ops::add_Scalar::call(const_cast<Tensor&>(*this), other, 1);
}
"""
FACTORIES = """
inline at::Tensor tensor(detail::Container container) {
  return autograd::make_variable(container.convert());
}
inline at::Tensor zeros(at::IntArrayRef size, at::TensorOptions options = {}) {
  at::AutoDispatchBelowADInplaceOrView guard;
  return autograd::make_variable(at::zeros(size, options), options.requires_grad());
}
"""


def small_include(folder: Path) -> Path:
    texts = {
        "ATen/core/TensorBody.h": BODY,
        "torch/csrc/autograd/generated/variable_factories.h": FACTORIES,
        "ATen/ops/add.h": "",
        "ATen/ops/add_native.h": "",
        "ATen/ops/add_ops.h": "struct TORCH_API add_Tensor {\n};\nstruct TORCH_API add__Tensor {\n"
        "};\nstruct TORCH_API add_Scalar {\n};\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_overloads_of_a_method_are_together_and_know_their_headers(tmp_path) -> None:
    write_index(tmp_path / "index.json", include=small_include(tmp_path / "include"))
    index = json.loads((tmp_path / "index.json").read_text())
    assert index["functions"] == ["add"]
    assert sorted(index["methods"]) == ["add", "add_"]
    add = index["methods"]["add"]
    assert add["declared"].count("at::Tensor add(") == 2
    assert add["defined"].count("inline at::Tensor Tensor::add(") == 2
    assert add["headers"] == ["add_ops.h"]


def test_a_factory_is_indexed_only_if_an_operator_makes_its_tensor(tmp_path) -> None:
    write_index(tmp_path / "index.json", include=small_include(tmp_path / "include"))
    index = json.loads((tmp_path / "index.json").read_text())
    assert list(index["factories"]) == ["zeros"]


def test_the_torch_that_is_installed_is_read_whole(tmp_path) -> None:
    write_index(tmp_path / "index.json", include=Path(torch.__file__).parent / "include")
    index = json.loads((tmp_path / "index.json").read_text())
    assert {"matmul", "softmax", "cat", "empty"} <= set(index["functions"])
    assert {"view", "sum", "to", "item", "copy_"} <= set(index["methods"])
    assert {"zeros", "full", "rand_like", "arange"} <= set(index["factories"])
    assert len(index["methods"]["sum"]["declared"].splitlines()) >= 2


def test_every_header_of_torch_that_ours_stand_in_for_leads_to_one_of_ours(tmp_path) -> None:
    write_headers(tmp_path)
    for ours, names in OVERLAID.items():
        assert (NATIVE / ours).is_file()
        for name in names:
            assert f"#include <{ours}>" in (tmp_path / name).read_text()

import pytest

from kopt.data.problems.contract import contract_errors, module_constant
from kopt.data.problems.family import family_of

GOOD = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, y=None):
        return x

def get_inputs():
    return [torch.randn(3)]

def get_init_inputs():
    return [4]
"""


def test_a_file_in_the_contract_has_no_errors():
    assert contract_errors(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("class Model(", "class Modle(", "it defines no class Model"),
        ("def get_inputs()", "def inputs()", "it defines no get_inputs()"),
        ("def forward", "def backward", "class Model has no forward"),
        ("class Model(nn.Module)", "class Model", "class Model must derive from torch.nn.Module"),
        ("get_inputs():", "get_inputs(n):", "get_inputs() must take no argument, and it takes 1"),
        (
            "[torch.randn(3)]",
            "[torch.randn(3), 1, 2]",
            "get_inputs() gives 3 argument(s), Model.forward takes 1 to 2",
        ),
        ("[4]", "[]", "get_init_inputs() gives 0 argument(s), Model.__init__ takes 1"),
    ],
)
def test_a_broken_file_has_one_clear_error(old: str, new: str, error: str):
    assert contract_errors(GOOD.replace(old, new, 1)) == [error]


def test_text_that_does_not_parse_names_the_line():
    (error,) = contract_errors("x = 1\ndef f(:\n")
    assert error.startswith("line 2:")


def test_a_null_byte_is_an_error_and_no_crash():
    assert len(contract_errors("x = '\0'")) == 1


def test_without_get_init_inputs_the_constructor_takes_none():
    source = GOOD.split("def get_init_inputs")[0]
    assert contract_errors(source) == [
        "get_init_inputs() gives 0 argument(s), Model.__init__ takes 1"
    ]
    assert contract_errors(source.replace("self, width", "self").replace("width", "x")) == []


@pytest.mark.parametrize(
    "returned", ["list(map(torch.randn, [3, 4, 5]))", "[torch.randn(3), *rest]", "inputs"]
)
def test_a_list_that_is_not_spelt_out_is_not_counted(returned: str):
    assert contract_errors(GOOD.replace("[torch.randn(3)]", returned)) == []


def test_a_forward_of_any_number_takes_any_number():
    source = GOOD.replace("self, x, y=None", "self, *xs").replace("return x", "return xs")
    assert contract_errors(source.replace("[torch.randn(3)]", "[1, 2, 3]")) == []


def test_an_inherited_forward_is_taken_as_given():
    source = GOOD.replace("class Model(nn.Module)", "class Model(Base)")
    assert contract_errors(source.replace("def forward", "def other")) == []


@pytest.mark.parametrize(
    "binding", ["from zoo import Model", "Model = make()", "if True:\n    Model = make()\n"]
)
def test_a_model_that_is_imported_or_assigned_is_taken_as_given(binding: str):
    assert contract_errors(f"{binding}\ndef get_inputs():\n    return []\n") == []


def test_a_stated_family_stands_above_a_guess():
    assert family_of(GOOD) == "elementwise"
    assert family_of(f'FAMILY = "mine"\n{GOOD}') == "mine"
    assert module_constant('A = "x"', "B") is None


@pytest.mark.parametrize(
    ("call", "family"),
    [
        ("nn.Conv2d(1, 2, 3)", "conv"),
        ("F.conv_transpose2d(x, w)", "conv"),
        ("nn.Linear(2, 3)", "linear"),
        ("torch.matmul(x, x)", "matmul"),
        ("x @ x", "matmul"),
        ("nn.MSELoss()", "loss"),
        ("F.cross_entropy(x, y)", "loss"),
        ("nn.LayerNorm(3)", "norm"),
        ("torch.softmax(x, 1)", "softmax"),
        ("torch.cumsum(x, 1)", "scan"),
        ("nn.MaxPool2d(2)", "pool"),
        ("x.mean()", "reduction"),
        ("nn.LSTM(3, 4)", "recurrent"),
        ("F.scaled_dot_product_attention(x, x, x)", "attention"),
        ("torch.sigmoid(x)", "elementwise"),
    ],
)
def test_a_family_is_told_from_what_is_called(call: str, family: str):
    assert family_of(GOOD.replace("return x", f"return {call}")) == family


def test_text_that_does_not_parse_has_no_family():
    assert family_of("def f(:") == ""

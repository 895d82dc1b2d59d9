import pytest

from kopt.data.problems.contract import contract_errors, input_cases, undefined

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y=None):
        return x

def get_inputs():
    return [torch.randn(8)]
"""
CASES = """
def get_input_cases():
    return [[torch.randn(3)], (torch.randn(4), torch.randn(4))]
"""


def test_a_problem_without_cases_has_one():
    assert input_cases(PROBLEM) == 1
    assert contract_errors(PROBLEM) == []


def test_cases_come_after_the_inputs():
    # get_inputs() and the two of the list.
    assert input_cases(PROBLEM + CASES) == 3
    assert contract_errors(PROBLEM + CASES) == []


@pytest.mark.parametrize("returned", ["[[torch.randn(n)] for n in (3, 4)]", "made()", "[*rest]"])
def test_cases_that_are_not_spelt_out_are_not_counted(returned: str):
    source = f"{PROBLEM}\ndef get_input_cases():\n    return {returned}\n"
    assert input_cases(source) is None
    assert contract_errors(source) == []


def test_cases_that_are_imported_are_taken_as_given():
    assert input_cases(f"from zoo import get_input_cases\n{PROBLEM}") is None


def test_text_that_does_not_parse_has_no_number_of_cases():
    assert input_cases("def f(:") is None


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ("[]", "get_input_cases() gives no case"),
        (
            "[[1], [1, 2, 3]]",
            "get_input_cases()[1] gives 3 argument(s), Model.forward takes 1 to 2",
        ),
        ("[3, 4]", "get_input_cases()[0] must be a list of forward's arguments, got 3"),
    ],
)
def test_a_wrong_list_of_cases_has_a_clear_error(returned: str, error: str):
    source = f"{PROBLEM}\ndef get_input_cases():\n    return {returned}\n"
    assert contract_errors(source)[0] == error


def test_cases_take_no_argument():
    source = f"{PROBLEM}\ndef get_input_cases(n):\n    return [[1]]\n"
    assert contract_errors(source) == ["get_input_cases() must take no argument, and it takes 1"]


def test_cases_alone_do_not_stand_for_the_inputs():
    source = PROBLEM.replace("get_inputs", "get_input_cases")
    assert "it defines no get_inputs()" in contract_errors(source)


def test_what_defines_the_names_is_a_problem_right_or_wrong():
    assert undefined(PROBLEM.replace("(self, x", "(self, x, z")) is None
    assert undefined("x = 1") == "it defines no class Model"
    assert undefined("class Model: pass") == "it defines no get_inputs()"


def test_text_nested_too_deeply_is_an_error_and_no_crash():
    (error,) = contract_errors("x = " + "(" * 100_000)
    assert error
    assert contract_errors("x = " + "-" * 200_000 + "1")

"""From whatever a kernel's file holds to KernelBench's contract, and a kernel to begin with."""

from kopt.data.problems.normal.cuda_file import SOURCE_SUFFIXES, beside, normal_form_of_cuda
from kopt.data.problems.normal.form import NormalForm
from kopt.data.problems.normal.python_file import normal_form, reference_form

__all__ = [
    "SOURCE_SUFFIXES",
    "NormalForm",
    "beside",
    "normal_form",
    "normal_form_of_cuda",
    "reference_form",
]

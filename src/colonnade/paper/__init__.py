"""The paper's room: its experiments, run again by `colonnade reproduce`. Nothing here is an option of the library.

* `experiments/`: what the paper's tables show, one declaration a file, in the words of `design`.
* `data_sets/`: what they are learned from, one loader a file.
* `methods/`: how they are learned, one a file, on a `problem`; `variants` are the choices that the authors made.
* `runner`: runs an experiment and keeps each of its `trials` in a `store`.
* `tables`, `figures`, `page`: trials beside what the authors stored and printed (`authors.json`).
* `smoothed`, `smoothed_report`: the smoothed analysis of appendix B.
* `successor`: scores of the ICML 2025 successor for logistic regression, and what its weights decide.
"""

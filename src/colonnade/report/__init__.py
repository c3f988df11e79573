"""Pages made of runs, for people who do not read terminals."""

from colonnade.report.writing import write_dpia as write_dpia
from colonnade.report.writing import write_report as write_report

from typing import Any

import pytest

import colonnade as cn


@pytest.mark.parametrize("n_clusters", [0, -1, 2.5, True])
def test_clusters_must_be_a_whole_number(n_clusters: Any) -> None:
    with pytest.raises(cn.InputError, match="n_clusters must be a whole number of 1 or more"):
        cn.KMeans(n_clusters)

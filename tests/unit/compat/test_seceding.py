"""Names that libraries import exist, and say what they lack when they are called."""

import pytest

from shoal.compat.seceding import CannotSecede, rejoin, secede


def test_seceding_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(CannotSecede, match=r"does not have secede\(\).*threads_per_worker"):
        secede()
    with pytest.raises(CannotSecede, match=r"does not have rejoin\(\)"):
        rejoin()

"""The compactor: merges the small files that statements write.

``plan`` decides which files of a directory are merged, ``run`` writes the new ones, ``compaction`` is one compaction
inside its transaction. The services: ``initiator`` requests compactions, ``worker`` runs them, ``cleaner`` removes the
files that they replace, ``housekeeper`` aborts timed-out transactions; ``service`` runs them all.
"""

from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.service import Compactor, CompactorStatus, RoundResult

__all__ = ["Compactor", "CompactorStatus", "RoundResult", "WorkerContext"]

tcbmttest write db.tcb "$THREADS" "$((400000 / THREADS))"
tcbmttest read db.tcb "$THREADS"
tcbmttest wicked -nc db.tcb "$THREADS" "$((20000 / THREADS))"

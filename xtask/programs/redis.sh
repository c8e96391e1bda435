redis-server --bind 127.0.0.1 --port 5393 --save "" --appendonly no \
    --io-threads "$((THREADS / 2))" --io-threads-do-reads yes > log &
server=$!
trap 'kill $server; wait $server' EXIT
until env -u LD_PRELOAD redis-cli -p 5393 ping 2> /dev/null | grep -q PONG; do :; done
env -u LD_PRELOAD redis-benchmark -p 5393 -t set -n 50000 -c 50 -P 8 | awk '
    /throughput summary/ { print "ops_per_s", $3 }
    /% <= / && $1 + 0 >= 99.9 && !found { found = 1; print "p99_9_ms", $3 }'

{
    echo "server:"
    echo "  num-threads: $THREADS"
    echo "  interface: 127.0.0.1@5391"
    echo "  do-daemonize: no"
    echo "  use-syslog: no"
    echo "  chroot: \"\""
    echo "  username: \"\""
    echo "  directory: \"$PWD\""
    echo "  pidfile: \"$PWD/unbound.pid\""
    echo "  local-zone: \"example.\" static"
    for n in $(seq 1000); do
        echo "  local-data: \"host$n.example. A 10.0.$((n / 250)).$((n % 250))\""
    done
} > unbound.conf
for n in $(seq 1000); do echo "host$n.example. A"; done > queries

ask() {
    env -u LD_PRELOAD dnsperf -s 127.0.0.1 -p 5391 -d queries "$@" 2>&1
}

PATH=$PATH:/usr/sbin
unbound -d -c unbound.conf 2> log &
server=$!
trap 'kill $server; wait $server' EXIT
# Not by asking: for a query that comes too early dnsperf waits a second, and spins all the while.
until grep -q "start of service" log; do
    kill -0 $server
    sleep 0.01
done
ask -n 100 -c 16 -T 2 | awk '
    /Queries per second/ { print "ops_per_s", $4 }
    /Average Latency/ { print "mean_ms", $4 * 1000 }'

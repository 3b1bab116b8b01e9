# Three nodes of a cluster behind nginx, which passes each request to the next node. Source it after common.sh, with `hearth` set
# to the binary. If PostgreSQL or nginx is missing and cannot be downloaded, prints "Skipped" and exits with success.
# shellcheck shell=bash

nginx=$(PATH="$PATH:/usr/sbin:$PWD/.build/peers/usr/sbin" command -v nginx || true)
if [[ -z $nginx ]]; then
  .ci/unpacked .build/peers nginx || { echo "Skipped: the cluster was not tested, because nginx is missing."; exit 0; }
  nginx=$PWD/.build/peers/usr/sbin/nginx
fi
programs=$(ls -d /usr/lib/postgresql/*/bin .build/peers/usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1 || true)
if [[ -z $programs ]]; then
  .ci/unpacked .build/peers postgresql-15 \
    || { echo "Skipped: the cluster was not tested, because PostgreSQL is missing."; exit 0; }
  programs=$(ls -d "$PWD"/.build/peers/usr/lib/postgresql/*/bin | tail -n 1)
fi

# PostgreSQL refuses to run as root.
as_user=()
# The path of a socket has at most 107 bytes, and PostgreSQL's user must reach it.
sockets=$(mktemp -d /tmp/hearth-clients-XXXXXX)
if [[ $(id -u) -eq 0 ]]; then
  user=$(id -un postgres 2>/dev/null || echo nobody)
  as_user=(setpriv "--reuid=$user" "--regid=$(id -gn "$user")" --clear-groups)
  chown "$user" "$sockets"
fi
nodes=()
proxy=
stop_nodes() {
  for pid in "${nodes[@]}" $proxy; do kill "$pid" 2>/dev/null || true; done
  for pid in "${nodes[@]}" $proxy; do wait "$pid" 2>/dev/null || true; done
  nodes=()
  proxy=
}
finish() {
  stop_nodes
  kill -INT "$postgres" 2>/dev/null || true
  wait "$postgres" 2>/dev/null || true
  rm -rf "$sockets"
}
"${as_user[@]}" "$programs/initdb" -D "$sockets/data" -U hearth -A trust -N --encoding=UTF8 --locale=C >"$work/postgres.log"
"${as_user[@]}" "$programs/postgres" -D "$sockets/data" -k "$sockets" -c listen_addresses= >>"$work/postgres.log" 2>&1 &
postgres=$!
trap finish EXIT
for _ in $(seq 100); do
  "$programs/pg_isready" -q -h "$sockets" && break
  sleep 0.1
done

# free_ports: prints two ports that nothing uses. Both sockets are open at the same time, so that the ports differ.
free_ports() {
  python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in sockets))'
}

# start_cluster PROJECT [OPTION…]: starts three nodes of a new cluster, and nginx. Sets `address` for gRPC, and
# `channel_address` for HTTP/1.1. Options are those of `hearth cluster init`.
start_cluster() {
  local project=$1 number url ports=() data=$sockets/$1
  shift
  stop_nodes
  "$programs/createdb" -h "$sockets" -U hearth "$project"
  url="postgres://hearth@/$project?host=$sockets"
  mkdir -p "$data"
  "$hearth" cluster init "$url" --project "$project" --key "$data/cluster.key" --accept-loss "$@" >"$work/cluster-init.log"
  for number in 1 2 3; do
    : >"$work/node$number.log"
    "$hearth" serve --emulator --cluster "$url" --cluster-key "$data/cluster.key" --data "$data/node$number" --port 0 \
      >"$work/node$number.log" 2>&1 &
    nodes+=($!)
  done
  for number in 1 2 3; do
    for _ in $(seq 200); do grep -q 'listening on' "$work/node$number.log" && break; sleep 0.1; done
    ports+=("$(sed -n 's/^hearth: listening on http:..127.0.0.1:\([0-9]*\).*/\1/p' "$work/node$number.log")")
  done
  start_nginx "${ports[@]}"
  # The other nodes read documents themselves when they have the owner's log.
  for _ in $(seq 200); do
    [[ $(cat "$work"/node?.log | grep -c 'reads documents itself') -ge 2 ]] && break
    sleep 0.1
  done
}

# start_nginx PORT…: starts nginx in front of nodes, and sets `address` and `channel_address`. If another program takes one of
# the ports before nginx does, tries other ports.
start_nginx() {
  local grpc_port http_port
  mkdir -p "$work/nginx"
  for _ in 1 2 3; do
    read -r grpc_port http_port < <(free_ports)
    address=127.0.0.1:$grpc_port
    channel_address=127.0.0.1:$http_port
    write_nginx_configuration "$@"
    "$nginx" -p "$PWD/$work/nginx" -c "$PWD/$work/nginx/nginx.conf" >"$work/nginx.log" 2>&1 &
    proxy=$!
    for _ in $(seq 100); do
      kill -0 "$proxy" 2>/dev/null || break
      # Another program may have the port, and nginx may end for that reason.
      curl -sf "http://$channel_address/readyz" >/dev/null && sleep 0.2 && kill -0 "$proxy" 2>/dev/null && return
      sleep 0.1
    done
    kill "$proxy" 2>/dev/null || true
    wait "$proxy" 2>/dev/null || true
    proxy=
  done
  echo "FAILED nginx does not serve the nodes:" >&2
  cat "$work/nginx.log" >&2
  exit 1
}

# write_nginx_configuration PORT…: writes nginx.conf for nodes with these ports.
write_nginx_configuration() {
  cat >"$work/nginx/nginx.conf" <<NGINX
daemon off;
pid nginx.pid;
error_log nginx.log;
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  client_max_body_size 0;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path other;
  uwsgi_temp_path other;
  scgi_temp_path other;
  # A connection of one protocol must not be used for the other.
  upstream grpc_nodes { $(printf 'server 127.0.0.1:%s max_fails=0; ' "$@") keepalive 32; }
  upstream http_nodes { $(printf 'server 127.0.0.1:%s max_fails=0; ' "$@") keepalive 32; }
  server {
    listen $address http2;
    http2_max_concurrent_streams 1024;
    location / {
      grpc_pass grpc://grpc_nodes;
      grpc_read_timeout 1h;
      grpc_send_timeout 1h;
      grpc_socket_keepalive on;
      client_body_timeout 1h;
    }
  }
  server {
    listen $channel_address;
    location / {
      proxy_pass http://http_nodes;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host \$host;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
NGINX
}

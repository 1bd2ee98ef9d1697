import { join } from 'node:path';
import { initdbLocale } from '../../../tools/local/postgres.ts';

export interface PatroniOptions {
  name: string;
  port: number;
  restPort: number;
  etcdPort: number;
  bin: string;
  folders: Record<string, string>;
  superuserPassword: string;
  synchronous: boolean;
  /** The certificate that the servers present. */
  tls: { cert: string; key: string };
}

/** Returns the configuration of a member's Patroni and its Postgres. */
export function patroniSettings({
  name,
  port,
  restPort,
  etcdPort,
  bin,
  folders,
  superuserPassword,
  synchronous,
  tls,
}: PatroniOptions): object {
  const copy = `${process.execPath} ${join(import.meta.dirname, 'copy-server.ts')} --members '${JSON.stringify(folders)}' --password ${superuserPassword}`;
  const superuser = { username: 'postgres', password: superuserPassword };
  return {
    scope: 'core-banking',
    name,
    log: { level: 'INFO' },
    restapi: { listen: `127.0.0.1:${restPort}`, connect_address: `127.0.0.1:${restPort}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ttl: 8,
        loop_wait: 1,
        retry_timeout: 3,
        maximum_lag_on_failover: 1_048_576,
        synchronous_mode: synchronous,
        postgresql: {
          use_slots: true,
          use_pg_rewind: false,
          parameters: {
            max_connections: 200,
            max_wal_senders: 5,
            wal_level: 'replica',
            hot_standby: 'on',
            wal_keep_size: '1GB',
            wal_sender_timeout: '5s',
            wal_receiver_timeout: '5s',
          },
        },
      },
      initdb: [
        ...initdbLocale
          .map((flag) => flag.slice(2))
          .map((flag) => ({ [flag.split('=')[0] ?? '']: flag.split('=')[1] })),
        { 'auth-host': 'scram-sha-256' },
      ],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: folders[port],
      bin_dir: bin,
      // Without pg_rewind a former primary is created again from the current one.
      remove_data_directory_on_diverged_timelines: true,
      remove_data_directory_on_rewind_failure: true,
      create_replica_methods: ['copy'],
      copy: { command: copy },
      authentication: { superuser, replication: superuser },
      parameters: {
        ssl: 'on',
        ssl_cert_file: tls.cert,
        ssl_key_file: tls.key,
        unix_socket_directories: '',
        timezone: 'UTC',
        log_timezone: 'UTC',
        shared_buffers: '128MB',
      },
      pg_hba: ['host all all 127.0.0.1/32 scram-sha-256', 'host replication all 127.0.0.1/32 scram-sha-256'],
    },
  };
}

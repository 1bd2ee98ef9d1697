import type { EventEmitter } from 'node:events';
import pg from 'pg';
import { passwordSeparator, passwordsOf } from './passwords.ts';

const wrongPassword = '28P01';

type OnConnected = Parameters<pg.Pool['connect']>[0];

/**
 * Creates a pool for a role that has one of the passwords in the URL, and may be given another of them at any time. If a
 * password is refused, the connection is tried again with the next one, with which later connections begin. Connections
 * that are open are not affected.
 */
export function createRotatingPool(config: pg.PoolConfig): pg.Pool {
  const url = URL.parse(config.connectionString ?? '');
  const passwords = url?.password.includes(passwordSeparator) ? passwordsOf(url) : [];
  if (passwords.length < 2) return new pg.Pool(config);
  let working = 0;

  class Client extends pg.Client {
    constructor(clientConfig?: pg.ClientConfig) {
      super(clientConfig);
      const tried = working;
      this.password = passwords[tried];
      (Reflect.get(this, 'connection') as EventEmitter).on('errorMessage', ({ code }: { code?: string }) => {
        if (code === wrongPassword) working = (tried + 1) % passwords.length;
      });
    }
  }
  class RotatingPool extends pg.Pool {
    override connect(): Promise<pg.PoolClient>;
    override connect(onConnected: OnConnected): void;
    override connect(onConnected?: OnConnected): Promise<pg.PoolClient> | void {
      if (onConnected === undefined)
        return new Promise((resolve, reject) =>
          this.connect((error, client) => (client === undefined ? reject(error) : resolve(client))),
        );
      const attempt = (others: number): void =>
        super.connect((error, client, release) => {
          const isRefused = error !== undefined && Reflect.get(error, 'code') === wrongPassword;
          if (isRefused && others > 0) attempt(others - 1);
          else onConnected(error, client, release);
        });
      attempt(passwords.length - 1);
    }
  }
  return new RotatingPool({ ...config, Client });
}

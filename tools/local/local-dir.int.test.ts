import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, isSameProcess, processIdentity, startChild } from './child.ts';
import { openLocalDir } from './local-dir.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'local-dir-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('a folder is opened by one start at a time, and by the next one after its release', async () => {
  const first = await openLocalDir(dir);
  await expect(openLocalDir(dir)).rejects.toThrow(/already in use by process/);
  first.release();
  (await openLocalDir(dir)).release();
});

test('a start waits for an earlier one that is stopping', async () => {
  const first = await openLocalDir(dir);
  first.stopping();
  const second = openLocalDir(dir);
  first.recordProcess({ name: 'x', pid: process.pid, identity: 'none', marker: '' });
  setTimeout(first.release, 300);
  (await second).release();
});

test('the lock of a process that has ended is taken over, even if another process now has its pid', async () => {
  const gone = { name: 'launcher', pid: process.pid, identity: 'another start time', marker: '' };
  writeFileSync(join(dir, 'lock'), JSON.stringify(gone));
  (await openLocalDir(dir)).release();
  writeFileSync(join(dir, 'lock'), 'torn');
  (await openLocalDir(dir)).release();
});

test('secrets and ports are kept, and only their owner can read them', async () => {
  const first = await openLocalDir(dir);
  const [secret, port] = [first.secret('a'), await first.port('p')];
  first.release();
  const second = await openLocalDir(dir);
  expect(second.secret('a')).toBe(secret);
  expect(second.secret('b')).not.toBe(secret);
  expect(await second.port('p')).toBe(port);
  expect(statSync(join(dir, 'state.json')).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'log')).mode & 0o777).toBe(0o700);
  second.release();
});

test('a kept port that another process uses is replaced', async () => {
  const local = await openLocalDir(dir);
  const port = await local.port('p');
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  expect(await local.port('p')).not.toBe(port);
  server.close();
  local.release();
});

test('processes of a killed run are ended, but not others with the same pid', async () => {
  const first = await openLocalDir(dir);
  const left = startChild({
    name: 'left',
    command: 'sleep',
    args: ['61'],
    log: join(dir, 'left.log'),
    marker: 'sleep 61',
    onStart: first.recordProcess,
  });
  const stranger = spawn('sleep', ['62']);
  await once(stranger, 'spawn');
  // The process is started by exec, during which it has no command line.
  await expect.poll(() => commandLine(left.pid), { timeout: 10_000 }).toMatch(/^sleep /);
  const pid = stranger.pid!;
  first.recordProcess({ name: 'stranger', pid, identity: processIdentity(pid)!, marker: 'sleep 62' });
  const records = join(dir, 'processes.json');
  expect(existsSync(records)).toBe(true);
  // The state is as after kill -9 of the launcher, long enough ago for the pid to have been reused.
  writeFileSync(join(dir, 'lock'), '');
  rmSync(join(dir, 'lock'));
  writeFileSync(
    records,
    JSON.stringify([left.record, { name: 'stranger', pid, identity: 'before', marker: 'sleep 62' }]),
  );
  const second = await openLocalDir(dir);
  expect(second.cleared).toEqual(['left']);
  expect(isSameProcess(left.record)).toBe(false);
  expect(processIdentity(pid)).toBeDefined();
  stranger.kill();
  second.release();
});

test('a folder whose passwords were deleted is refused and stays unlocked', async () => {
  const half = join(dir, 'half');
  mkdirSync(join(half, 'postgres'), { recursive: true });
  for (let attempt = 0; attempt < 2; attempt++)
    await expect(openLocalDir(half)).rejects.toThrow(
      /half holds a database, but not the state\.json .* delete the folder/,
    );
});

test('a folder that cannot be written is named in the error', async () => {
  writeFileSync(join(dir, 'file'), '');
  await expect(openLocalDir(join(dir, 'file'))).rejects.toThrow(/LOCAL_DIR .*file cannot be written/);
});

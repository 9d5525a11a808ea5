import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROVIDER_KEY } from '../support/gateway.js';

export interface StandIn {
  url: string;
  stop(): Promise<void>;
}

/** A realistic provider in a process of its own; what it answers is told in stand-in.mjs. */
export async function startStandIn(): Promise<StandIn> {
  const script = join(process.cwd(), 'test/sdk/stand-in.mjs');
  const child = spawn(process.execPath, [script, PROVIDER_KEY], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = await Promise.race([
    new Promise<string>((resolve) => createInterface(child.stdout).once('line', resolve)),
    exited.then(() => Promise.reject(new Error('the stand-in provider did not start'))),
  ]);
  return {
    url,
    stop: () => {
      child.stdin.end();
      return exited;
    },
  };
}

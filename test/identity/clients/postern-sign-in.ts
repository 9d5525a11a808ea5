import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { Browser } from '../device-flow.js';
import type { ClientGateway } from './client-gateway.js';

const MAIN = resolve(__dirname, '../../../dist/src/cli/start.js');
/** `postern` as it ships, for the configuration of clients. */
export const POSTERN = [process.execPath, MAIN];

/** Runs `postern sign-in`, and does what jane does in the browser. @param home where the tokens are kept */
export async function signInHere({ postern, issuer, base }: ClientGateway, home: string): Promise<void> {
  const child = spawn(POSTERN[0]!, [...POSTERN.slice(1), 'sign-in', base], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let printed = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const ended = new Promise((done) => child.on('close', done));
  const [, code] = await eventually(() => /type the code (\S+)$/m.exec(printed));
  const page = await new Browser(postern).signIn(issuer, code!, 'jane');
  expect([page.status, await ended, printed]).toEqual([200, 0, expect.anything()]);
}

import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Env } from './config/env.js';

/** The address cannot be listened on; the message names the remedy. */
export class ListenFault extends Error {
  override readonly name = 'ListenFault';
}

/**
 * Tries the ports that a start is going to listen on, before it makes anything that a failed start would leave behind.
 *
 * @throws ListenFault for one that is taken
 */
export async function tryPorts(env: Env): Promise<void> {
  const ports: [variable: string, port: number | undefined][] = [
    ['PORT', env.port],
    ['ADMIN_PORT', env.adminPort],
  ];
  for (const [variable, port] of ports) {
    if (port === undefined || port === 0) continue;
    const server = createServer();
    await listen(server, env, variable, port);
    await new Promise((closed) => server.close(closed));
  }
}

/** In place of Nest's own listen(), which logs what we are about to explain. @param variable where the port comes from */
export async function listen(server: Server, env: Env, variable: string, port: number): Promise<void> {
  try {
    server.listen(port, env.host);
    await once(server, 'listening');
  } catch (error) {
    throw explainedListenFault(env, variable, port, error);
  }
}

function explainedListenFault(env: Env, variable: string, port: number, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  const where = `${env.host}:${port}`;
  if (code === 'EADDRINUSE')
    return new ListenFault(`${where} is taken by another process; stop it or set ${variable} to a free port`);
  if (code === 'EACCES')
    return new ListenFault(`this user may not listen on ${where}; set ${variable} to 1024 or above`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new ListenFault(
      `this machine has no address ${env.host}; set HOST to one of its own, or 0.0.0.0 for all`,
    );
  }
  return error as Error;
}

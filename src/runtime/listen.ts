import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Env } from '../config/env.js';

type Addressed = Pick<Env, 'host' | 'port' | 'adminPort'>;

/**
 * Connections that the kernel keeps until they are accepted; it takes at most `net.core.somaxconn`, on Linux 4,096 by
 * default. With Node's own 511, clients that connect at the same time wait a second or more, or are reset.
 */
const BACKLOG = 4_096;

/** The gateway cannot listen on the address; the message names the remedy. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * Tries the ports of a start before it creates anything that a failed start would leave behind.
 *
 * @throws ListenError if one is in use
 */
export async function tryPorts(env: Addressed): Promise<void> {
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

/** Replaces Nest's listen(), which logs errors itself. @param variable the setting of the port */
export async function listen(server: Server, env: Addressed, variable: string, port: number): Promise<void> {
  try {
    server.listen({ port, host: env.host, backlog: BACKLOG });
    await once(server, 'listening');
  } catch (error) {
    throw explained(env, variable, port, error);
  }
}

function explained(env: Addressed, variable: string, port: number, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  const where = `${env.host}:${port}`;
  if (code === 'EADDRINUSE')
    return new ListenError(
      `${where} is in use by another process; stop it or set ${variable} to a free port`,
    );
  if (code === 'EACCES')
    return new ListenError(`this user may not listen on ${where}; set ${variable} to 1024 or above`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new ListenError(
      `this machine has no address ${env.host}; set HOST to one of its own, or 0.0.0.0 for all`,
    );
  }
  return error as Error;
}

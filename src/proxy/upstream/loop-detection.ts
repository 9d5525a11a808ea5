import type { AddressInfo, Server, Socket } from 'node:net';
import type { HttpAdapterHost } from '@nestjs/core';
import type { GatewayHttpAdapter } from '../http/gateway-http.adapter.js';

/**
 * Returns true if this connection leads to a listener of this gateway: a call would be forwarded to itself endlessly. Always
 * false on the command line, which has no listener.
 */
export function isProxyLoop({ httpAdapter }: HttpAdapterHost, socket: Socket): boolean {
  const { servers = [] } = (httpAdapter ?? {}) as Partial<Pick<GatewayHttpAdapter, 'servers'>>;
  return servers.some((server) => isServedBy(server, socket));
}

function isServedBy(server: Server, socket: Socket): boolean {
  const own = server.address() as AddressInfo | null;
  if (own === null || socket.remotePort !== own.port) return false;
  const remote = plain(socket.remoteAddress);
  if (remote === plain(socket.localAddress) || remote === own.address) return true;
  // On Linux all of 127.0.0.0/8 is this machine, and connections there come from 127.0.0.1.
  return (own.address === '0.0.0.0' || own.address === '::') && remote.startsWith('127.');
}

/** Without the IPv4-in-IPv6 form (RFC 4291 2.5.5.2). */
function plain(address = ''): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

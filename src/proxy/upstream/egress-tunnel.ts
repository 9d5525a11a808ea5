import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { buildConnector } from 'undici';

type Result = [error: Error, tunnel: null] | [error: null, tunnel: Socket];

/**
 * Opens a tunnel through an egress proxy with CONNECT (RFC 9110 9.3.6). The proxy resolves the host name.
 *
 * @param callback called exactly once
 * @returns cancels the attempt; the callback then gets an error
 */
export function openTunnel(
  proxyUrl: string,
  target: buildConnector.Options,
  timeoutMs: number,
  callback: (...result: Result) => void,
): () => void {
  const proxy = new URL(proxyUrl);
  const secure = proxy.protocol === 'https:';
  const port = target.port || (target.protocol === 'https:' ? '443' : '80');
  // RFC 9110 9.3.6: host and port, an IPv6 address in brackets; undici passes it without.
  const authority = `${isIPv6(target.hostname) ? `[${target.hostname}]` : target.hostname}:${port}`;
  const headers: Record<string, string> = { host: authority };
  if (proxy.username !== '') {
    const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    headers['proxy-authorization'] = `Basic ${Buffer.from(user).toString('base64')}`;
  }
  const connect = (secure ? secureRequest : request)({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (secure ? 443 : 80),
    method: 'CONNECT',
    path: authority,
    headers,
    agent: false,
    ...(secure && { rejectUnauthorized: true }),
  });
  let settled = false;
  const settle = (...result: Result) => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    callback(...result);
  };
  const fail = (message: string, cause?: unknown) => {
    settle(
      Object.assign(new Error(`the egress proxy ${message}`, { cause }), { code: 'EGRESS_PROXY' }),
      null,
    );
    connect.destroy();
  };
  const timer = setTimeout(() => fail('did not open a tunnel in time'), timeoutMs);
  connect.once('connect', ({ statusCode = 0 }, socket: Socket, head) => {
    // Any 2xx opens the tunnel (RFC 9110 9.3.6).
    if (settled || statusCode < 200 || statusCode > 299) {
      socket.destroy();
      fail(`responded with ${statusCode}`);
      return;
    }
    if (head.length > 0) socket.unshift(head);
    settle(null, socket);
  });
  connect.once('upgrade', (_response, socket: Socket) => {
    socket.destroy();
    fail('responded with 101');
  });
  // Not `once`: a later error without a listener would end the process.
  connect.on('error', (error) => fail('could not be reached', error));
  connect.once('close', () => fail('closed the connection'));
  connect.end();
  return () => fail('is no longer needed');
}

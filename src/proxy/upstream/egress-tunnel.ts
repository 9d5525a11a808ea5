import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { buildConnector } from 'undici';

type Verdict = [error: Error, tunnel: null] | [error: null, tunnel: Socket];

/**
 * Asks an egress proxy for a tunnel (RFC 9110 9.3.6); names are then resolved by the proxy.
 *
 * @param callback told exactly once, whatever the proxy says or does afterwards
 * @returns gives the attempt up; the callback is then told of an error
 */
export function openTunnel(
  proxyUrl: string,
  target: buildConnector.Options,
  timeoutMs: number,
  callback: (...verdict: Verdict) => void,
): () => void {
  const proxy = new URL(proxyUrl);
  const secure = proxy.protocol === 'https:';
  const port = target.port || (target.protocol === 'https:' ? '443' : '80');
  // RFC 9110 9.3.6: host and port, an IPv6 address in brackets; undici hands it over without.
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
  let told = false;
  const tell = (...verdict: Verdict) => {
    if (told) return;
    told = true;
    clearTimeout(timer);
    callback(...verdict);
  };
  const fail = (message: string, cause?: unknown) => {
    tell(new Error(`the egress proxy ${message}`, { cause }), null);
    connect.destroy();
  };
  const timer = setTimeout(() => fail('did not open a tunnel in time'), timeoutMs);
  connect.once('connect', ({ statusCode = 0 }, socket: Socket, head) => {
    // Any 2xx opens the tunnel (RFC 9110 9.3.6).
    if (told || statusCode < 200 || statusCode > 299) {
      socket.destroy();
      fail(`answered ${statusCode}`);
      return;
    }
    if (head.length > 0) socket.unshift(head);
    tell(null, socket);
  });
  connect.once('upgrade', (_response, socket: Socket) => {
    socket.destroy();
    fail('answered 101');
  });
  // Not once: what goes wrong after the verdict has nobody else to hear it and would end the process.
  connect.on('error', (error) => fail('could not be reached', error));
  connect.once('close', () => fail('closed the connection'));
  connect.end();
  return () => fail('is no longer needed');
}

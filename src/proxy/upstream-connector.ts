import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { addressClass } from '../providers/provider-url.js';

/** What a connection to a provider needs to know of this installation. */
export interface ConnectorSettings {
  connectTimeoutMs: number;
  /** An egress proxy that is asked for a tunnel; undefined: connect directly. */
  proxyUrl: string | undefined;
  /** Tells whether this socket leads back into this very gateway. */
  leadsHome: (socket: Socket) => boolean;
}

/** A connection that the rules for provider addresses forbid. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/**
 * Opens connections to providers: names are resolved here and each address is judged at the moment it is used, so that
 * a name that changes its mind after it was configured (DNS rebinding) gains nothing. TLS is always verified, also
 * where NODE_TLS_REJECT_UNAUTHORIZED says otherwise; private CAs come by NODE_EXTRA_CA_CERTS.
 */
export function upstreamConnector(settings: ConnectorSettings): buildConnector.connector {
  const connectPlain = buildConnector({
    timeout: settings.connectTimeoutMs,
    lookup: judgingLookup(true),
    allowH2: false,
  });
  const connectTls = buildConnector({
    timeout: settings.connectTimeoutMs,
    lookup: judgingLookup(false),
    allowH2: false,
    rejectUnauthorized: true,
  });
  return (options, callback) => {
    const secure = options.protocol === 'https:';
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const refusal = isIP(host) === 0 ? null : judge(host, !secure);
    if (refusal !== null) {
      callback(refusal, null);
      return;
    }
    const arrived: buildConnector.Callback = (...args) => {
      const [error, socket] = args;
      if (error === null && settings.leadsHome(socket)) {
        socket.destroy();
        callback(new ForbiddenAddress('the provider URL leads back to this gateway'), null);
        return;
      }
      callback(...args);
    };
    if (settings.proxyUrl === undefined) {
      (secure ? connectTls : connectPlain)(options, arrived);
      return;
    }
    openTunnel(settings.proxyUrl, options, settings.connectTimeoutMs, (error, tunnel) => {
      if (error !== null) callback(error, null);
      else if (secure) connectTls({ ...options, httpSocket: tunnel }, callback);
      else callback(null, tunnel);
    });
  };
}

/** Null when a provider may live at this address. */
function judge(address: string, plainText: boolean): ForbiddenAddress | null {
  const kind = addressClass(address);
  if (kind === 'refused')
    return new ForbiddenAddress('the provider resolves to a link-local or metadata address');
  if (kind === 'public' && plainText) {
    return new ForbiddenAddress('plain http is only for loopback and private addresses; use https');
  }
  return null;
}

/** dns.lookup that fails when any address it found is forbidden: one bad address among good ones is an attack. */
function judgingLookup(plainText: boolean): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, found: LookupAddress[]) => {
      const forbidden =
        error === null ? found.map(({ address }) => judge(address, plainText)).find(Boolean) : null;
      const fault = error ?? forbidden ?? null;
      if (fault !== null) callback(fault, '', 0);
      else if (options.all) callback(null, found);
      else callback(null, found[0]!.address, found[0]!.family);
    });
  };
}

/** Asks the egress proxy for a tunnel (RFC 9110 9.3.6); names are then resolved by the proxy. */
function openTunnel(
  proxyUrl: string,
  target: buildConnector.Options,
  timeoutMs: number,
  callback: (error: Error | null, tunnel: Socket) => void,
): void {
  const proxy = new URL(proxyUrl);
  const port = target.port || (target.protocol === 'https:' ? '443' : '80');
  const authority = `${target.hostname}:${port}`;
  const headers: Record<string, string> = { host: authority };
  if (proxy.username !== '') {
    const user = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    headers['proxy-authorization'] = `Basic ${Buffer.from(user).toString('base64')}`;
  }
  const ask = proxy.protocol === 'https:' ? secureRequest : request;
  const connect = ask({
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: authority,
    headers,
    agent: false,
    signal: AbortSignal.timeout(timeoutMs),
    ...(proxy.protocol === 'https:' && { rejectUnauthorized: true }),
  });
  const fail = (message: string, cause?: unknown) => callback(new Error(message, { cause }), null as never);
  connect.once('connect', (response, socket: Socket, head) => {
    if (response.statusCode !== 200) {
      socket.destroy();
      fail(`the egress proxy answered ${response.statusCode}`);
      return;
    }
    if (head.length > 0) socket.unshift(head);
    callback(null, socket);
  });
  connect.once('response', (response) => {
    response.destroy();
    fail(`the egress proxy answered ${response.statusCode}`);
  });
  connect.once('error', (error) => fail('the egress proxy could not be reached', error));
  connect.end();
}

import { lookup as dnsLookup } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { addressClass } from '../../platform/provider-url.js';
import { openTunnel } from './egress-tunnel.js';

/** Settings for connections to providers. */
export interface ConnectorSettings {
  connectTimeoutMs: number;
  /** Egress proxy to tunnel through; undefined to connect directly. */
  proxyUrl: string | undefined;
  /** Returns true if this socket leads back to this gateway. */
  isProxyLoop: (socket: Socket) => boolean;
}

/** The rules for provider addresses forbid this connection. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
  readonly code = 'FORBIDDEN_ADDRESS';
}

/**
 * Opens a connection.
 *
 * @returns cancels the attempt; the callback then gets an error. No effect once the callback was called.
 */
export type UpstreamConnector = (
  options: buildConnector.Options,
  callback: buildConnector.Callback,
) => () => void;

/** undici's connector returns the socket it opens, which its types omit (core/connect.js). */
type SocketConnector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket;

/**
 * Opens connections to providers. It resolves names itself and checks each address when it is used, so that a name that
 * resolves to another address later (DNS rebinding) is still checked. TLS is always verified, even if
 * NODE_TLS_REJECT_UNAUTHORIZED says otherwise; private CAs are set with NODE_EXTRA_CA_CERTS.
 */
export function upstreamConnector(settings: ConnectorSettings): UpstreamConnector {
  const connectPlain = buildConnector({
    timeout: settings.connectTimeoutMs,
    lookup: checkedLookup(true),
    allowH2: false,
  }) as unknown as SocketConnector;
  const connectTls = buildConnector({
    timeout: settings.connectTimeoutMs,
    lookup: checkedLookup(false),
    allowH2: false,
    rejectUnauthorized: true,
  }) as unknown as SocketConnector;
  return (options, callback) => {
    const secure = options.protocol === 'https:';
    const forbidden = isIP(options.hostname) === 0 ? null : checkAddress(options.hostname, !secure);
    if (forbidden !== null) {
      callback(forbidden, null);
      return () => {};
    }
    let settled = false;
    const onResult: buildConnector.Callback = (...args) => {
      settled = true;
      const [error, socket] = args;
      if (error === null && settings.proxyUrl === undefined && settings.isProxyLoop(socket)) {
        socket.destroy();
        callback(new ForbiddenAddress('the provider URL leads back to this gateway'), null);
        return;
      }
      callback(...args);
    };
    const cancelled = (socket: Socket) => () => {
      if (!settled) socket.destroy(new Error('the client disconnected while the connection was being made'));
    };
    if (settings.proxyUrl === undefined) {
      return cancelled((secure ? connectTls : connectPlain)(options, onResult));
    }
    let cancel = openTunnel(settings.proxyUrl, options, settings.connectTimeoutMs, (...result) => {
      const [error, tunnel] = result;
      if (error !== null) onResult(error, null);
      else if (secure) cancel = cancelled(connectTls({ ...options, httpSocket: tunnel }, onResult));
      else onResult(null, tunnel);
    });
    return () => cancel();
  };
}

/** Returns null if providers may have this address. */
function checkAddress(address: string, plainText: boolean): ForbiddenAddress | null {
  const kind = addressClass(address);
  if (kind === 'forbidden')
    return new ForbiddenAddress(
      'the provider resolves to a link-local, unspecified, multicast or cloud metadata address',
    );
  if (kind === 'public' && plainText) {
    return new ForbiddenAddress('plain http is only for loopback and private addresses; use https');
  }
  return null;
}

/**
 * Resolves a name for a client that opens its connections itself, by the same rules.
 *
 * @param plainText whether the connection is not encrypted @returns an IP address
 * @throws ForbiddenAddress, or the error of the look-up
 */
export function resolveAllowed(hostname: string, plainText: boolean): Promise<string> {
  const name = hostname.replace(/^\[|\]$/g, '');
  if (isIP(name) !== 0) {
    const forbidden = checkAddress(name, plainText);
    return forbidden === null ? Promise.resolve(name) : Promise.reject(forbidden);
  }
  return new Promise((resolve, reject) => {
    checkedLookup(plainText)(name, {}, (error, address) =>
      error === null ? resolve(address as string) : reject(error),
    );
  });
}

/** dns.lookup that fails if any of the addresses is forbidden: one forbidden address among good ones is an attack. */
function checkedLookup(plainText: boolean): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, found) => {
      const forbidden =
        error === null ? found.map(({ address }) => checkAddress(address, plainText)).find(Boolean) : null;
      const failure = error ?? forbidden ?? null;
      if (failure !== null) callback(failure, '', 0);
      else if (options.all) callback(null, found);
      else callback(null, found[0]!.address, found[0]!.family);
    });
  };
}

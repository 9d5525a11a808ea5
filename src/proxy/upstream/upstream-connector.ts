import { lookup as dnsLookup } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { addressClass } from '../../platform/provider-url.js';
import { openTunnel } from './egress-tunnel.js';

/** What a connection to a provider needs to know of this installation. */
export interface ConnectorSettings {
  connectTimeoutMs: number;
  /** An egress proxy that is asked for a tunnel; undefined: connect directly. */
  proxyUrl: string | undefined;
  /** Tells whether this socket leads back into this very gateway. */
  isProxyLoop: (socket: Socket) => boolean;
}

/** A connection that the rules for provider addresses forbid. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/**
 * Opens a connection.
 *
 * @returns gives the attempt up; the callback is then told of an error. Without effect once the callback was told.
 */
export type UpstreamConnector = (
  options: buildConnector.Options,
  callback: buildConnector.Callback,
) => () => void;

/** undici's connector returns the socket it opens, which its types do not tell (core/connect.js). */
type SocketConnector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket;

/**
 * Opens connections to providers: names are resolved here and each address is judged at the moment it is used, so that
 * a name that changes its mind after it was configured (DNS rebinding) gains nothing. TLS is always verified, also
 * where NODE_TLS_REJECT_UNAUTHORIZED says otherwise; private CAs come by NODE_EXTRA_CA_CERTS.
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
    const refusal = isIP(options.hostname) === 0 ? null : judge(options.hostname, !secure);
    if (refusal !== null) {
      callback(refusal, null);
      return () => {};
    }
    let told = false;
    const arrived: buildConnector.Callback = (...args) => {
      told = true;
      const [error, socket] = args;
      if (error === null && settings.proxyUrl === undefined && settings.isProxyLoop(socket)) {
        socket.destroy();
        callback(new ForbiddenAddress('the provider URL leads back to this gateway'), null);
        return;
      }
      callback(...args);
    };
    const giveUp = (socket: Socket) => () => {
      if (!told) socket.destroy(new Error('the client left while the connection was made'));
    };
    if (settings.proxyUrl === undefined) {
      return giveUp((secure ? connectTls : connectPlain)(options, arrived));
    }
    let cancel = openTunnel(settings.proxyUrl, options, settings.connectTimeoutMs, (...verdict) => {
      const [error, tunnel] = verdict;
      if (error !== null) arrived(error, null);
      else if (secure) cancel = giveUp(connectTls({ ...options, httpSocket: tunnel }, arrived));
      else arrived(null, tunnel);
    });
    return () => cancel();
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
function checkedLookup(plainText: boolean): LookupFunction {
  return (hostname, options, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, found) => {
      const forbidden =
        error === null ? found.map(({ address }) => judge(address, plainText)).find(Boolean) : null;
      const fault = error ?? forbidden ?? null;
      if (fault !== null) callback(fault, '', 0);
      else if (options.all) callback(null, found);
      else callback(null, found[0]!.address, found[0]!.family);
    });
  };
}

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { Request } from 'express';
import { ClientAddress } from '../../platform/client-address.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { keyLabel } from '../../auth/credential.js';
import type { GatewayError } from '../../errors/gateway-error.js';

const WINDOW_MS = 60_000;
/** Keys with a log line of their own for each code. All others share one line, because anybody can make up keys. */
const KEYS_PER_CODE = 50;
const OTHER_KEYS = 'others';
/** What a HEAD without a key gets. Claude Code sends one to its base URL at each start, to open the connection. */
const OF_PROBES = new Set(['invalid_api_key', 'not_found']);

/** @param req null for bytes that Node did not parse as a request */
export type RejectionListener = (error: GatewayError, req: Request | null, requestId: string) => void;

interface LoggedKey {
  /** When the next line may come (monotonic ms). */
  until: number;
  /** Rejections since the last line. */
  suppressed: number;
}

/**
 * Counts rejected requests by code, and logs one line a minute for each code and key. An admin sees whose requests fail and
 * who guesses keys, and a flood of rejections does not flood the log. A HEAD without a key is counted only.
 */
export class RejectionLog {
  /** By code, since the start. */
  readonly counts = new Map<string, number>();
  private readonly logger = new Logger('Rejections');
  private readonly clientAddress: ClientAddress;
  private readonly logged = new Map<string, Map<string, LoggedKey>>();
  private readonly listeners: RejectionListener[] = [];

  constructor(env: Pick<Settings, 'trustedProxies' | 'requestLogClient'>) {
    this.clientAddress = new ClientAddress(env.trustedProxies, env.requestLogClient);
  }

  /** Registers a listener for all that is counted. */
  listen(listener: RejectionListener): void {
    this.listeners.push(listener);
  }

  addRequest(error: GatewayError, req: Request, requestId: string): void {
    const key = keyLabel(req.rawHeaders);
    this.count(error, req, requestId);
    if (req.method === 'HEAD' && key === 'none' && OF_PROBES.has(error.code)) return;
    this.log(error, key, requestId, req);
  }

  /** Adds a rejection of bytes that Node did not parse as a request. */
  addConnection(error: GatewayError, socket: Socket, requestId: string): void {
    this.count(error, null, requestId);
    this.log(error, 'none', requestId, { socket, headers: {} });
  }

  private count(error: GatewayError, req: Request | null, requestId: string): void {
    const { code } = error;
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1);
    for (const listener of this.listeners) listener(error, req, requestId);
  }

  private log(
    { code, given: { cause } }: GatewayError,
    key: string,
    requestId: string,
    { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  ): void {
    const now = performance.now();
    const keys = this.keysOf(code);
    const name = keys.has(key) || hasRoom(keys, now) ? key : OTHER_KEYS;
    const last = keys.get(name);
    if (last !== undefined && now < last.until) {
      last.suppressed++;
      return;
    }
    keys.set(name, { until: now + WINDOW_MS, suppressed: 0 });
    const forwardedFor = headers['x-forwarded-for'] as string | undefined;
    const address = this.clientAddress.of(socket.remoteAddress, forwardedFor);
    const from = address === null ? '' : `, from ${address}`;
    const more =
      last === undefined || last.suppressed === 0
        ? ''
        : ` (${last.suppressed} more since the last such line)`;
    const why = cause instanceof Error ? ` (${describeError(cause)})` : '';
    this.logger.warn(`Rejected request ${requestId}: ${code}${why}, key ${name}${from}${more}`, {
      request_id: requestId,
      code,
      key: name,
      client_ip: address,
    });
  }

  private keysOf(code: string): Map<string, LoggedKey> {
    let keys = this.logged.get(code);
    if (keys === undefined) this.logged.set(code, (keys = new Map<string, LoggedKey>()));
    return keys;
  }
}

/** Removes keys whose minute is over if the map is full; their suppressed rejections count towards the shared line. */
function hasRoom(keys: Map<string, LoggedKey>, now: number): boolean {
  if (keys.size < KEYS_PER_CODE) return true;
  let unlogged = 0;
  for (const [key, { until, suppressed }] of keys) {
    if (until > now) continue;
    keys.delete(key);
    unlogged += suppressed;
  }
  const others = keys.get(OTHER_KEYS) ?? { until: now, suppressed: 0 };
  if (unlogged > 0) keys.set(OTHER_KEYS, { ...others, suppressed: others.suppressed + unlogged });
  return keys.size < KEYS_PER_CODE;
}

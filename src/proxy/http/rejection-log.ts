import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { ClientAddress } from '../../platform/client-address.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { keyLabel } from '../../auth/key-label.js';
import type { GatewayError } from '../../errors/gateway-error.js';

const WINDOW_MS = 60_000;
/** Keys that one code is told of apart; past it all others share one line, for anybody can mint keys of the right form. */
const KEYS_PER_CODE = 50;
const OTHER_KEYS = 'others';

interface Told {
  /** When the next line may come (monotonic ms). */
  until: number;
  /** RejectionLog since the last line. */
  silent: number;
}

/**
 * What the gateway itself answered and why: counted by code, and told to the log once a minute for each code and key, so
 * that an admin sees whose calls fail and who is guessing, and no flood of refusals becomes one of lines.
 */
export class RejectionLog {
  /** By code, since the start. */
  readonly counts = new Map<string, number>();
  private readonly logger = new Logger('RejectionLog');
  private readonly clientAddress: ClientAddress;
  private readonly told = new Map<string, Map<string, Told>>();

  constructor(env: Pick<Settings, 'trustedProxies' | 'requestLogClient'>) {
    this.clientAddress = new ClientAddress(env.trustedProxies, env.requestLogClient);
  }

  addRequest(refusal: GatewayError, req: IncomingMessage & { requestId: string }): void {
    this.note(refusal, keyLabel(req.rawHeaders), req.requestId, req);
  }

  /** Of what never became a request. */
  addConnection(refusal: GatewayError, socket: Socket, requestId: string): void {
    this.note(refusal, 'none', requestId, { socket, headers: {} });
  }

  private note(
    { code, options: { cause } }: GatewayError,
    key: string,
    requestId: string,
    { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  ): void {
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1);
    const now = performance.now();
    const keys = this.toldOf(code);
    const name = keys.has(key) || hasRoom(keys, now) ? key : OTHER_KEYS;
    const last = keys.get(name);
    if (last !== undefined && now < last.until) {
      last.silent++;
      return;
    }
    keys.set(name, { until: now + WINDOW_MS, silent: 0 });
    const forwardedFor = headers['x-forwarded-for'] as string | undefined;
    const address = this.clientAddress.of(socket.remoteAddress, forwardedFor);
    const from = address === null ? '' : `, from ${address}`;
    const more =
      last === undefined || last.silent === 0 ? '' : ` (${last.silent} more since the last such line)`;
    const why = cause instanceof Error ? ` (${describeError(cause)})` : '';
    this.logger.warn(`Call ${requestId} refused: ${code}${why}, key ${name}${from}${more}`, {
      request_id: requestId,
      code,
      key: name,
      client_ip: address,
    });
  }

  private toldOf(code: string): Map<string, Told> {
    let keys = this.told.get(code);
    if (keys === undefined) this.told.set(code, (keys = new Map<string, Told>()));
    return keys;
  }
}

/** Forgets keys whose minute is over where there is no room; what they were silent about is told with the others. */
function hasRoom(keys: Map<string, Told>, now: number): boolean {
  if (keys.size < KEYS_PER_CODE) return true;
  let untold = 0;
  for (const [key, { until, silent }] of keys) {
    if (until > now) continue;
    keys.delete(key);
    untold += silent;
  }
  const others = keys.get(OTHER_KEYS) ?? { until: now, silent: 0 };
  if (untold > 0) keys.set(OTHER_KEYS, { ...others, silent: others.silent + untold });
  return keys.size < KEYS_PER_CODE;
}

import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import type { CachedResponse } from '../../idempotency/cached-responses.service.js';
import { ResponseMemory } from '../../idempotency/response-memory.js';
import type { StoredResponse } from '../../idempotency/stored-response.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import type { Call } from '../call.js';
import { ResponseWriter } from '../exchange/response-writer.js';
import { Replay, sendStored } from './replay.js';

/** Sends stored responses. Each is written at once, and stays in memory until its client has read it. */
@Injectable()
export class StoredResponseSender {
  constructor(
    private readonly log: RequestLogService,
    private readonly memory: ResponseMemory,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** @returns false when there is no memory for it: nothing was sent to the client */
  async sendCached(call: Call, { response, age }: CachedResponse): Promise<boolean> {
    const bytes = response.body.length;
    const { req, res, caller } = call;
    if (!this.memory.replays.reserve(caller.grant, bytes)) return false;
    try {
      const writer = new ResponseWriter(req, res, this.env.clientIdleTimeoutMs, () => {});
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await sendStored(call, writer, this.log, response, 'cached', [
        'x-gateway-cache',
        'hit',
        'age',
        String(age),
      ]);
      await closed;
    } finally {
      this.memory.replays.free(caller.grant, bytes);
    }
    return true;
  }

  /**
   * Sends a duplicate request the response of the original.
   *
   * @param find returns it; waits for it until the signal says that the client has disconnected
   * @throws GatewayError if nothing was sent to the client yet
   */
  async replay(call: Call, find: (disconnected: AbortSignal) => Promise<StoredResponse>): Promise<void> {
    const { grant } = call.caller;
    let held = 0;
    try {
      await new Replay(call, this.log, this.env).run(async (disconnected) => {
        const stored = await find(disconnected);
        if (!this.memory.replays.reserve(grant, stored.body.length))
          throw new GatewayError('overloaded', {
            message:
              'Too many stored responses are being sent to clients of this gateway key or its team. Read those, and try again.',
          });
        held = stored.body.length;
        return stored;
      });
    } finally {
      this.memory.replays.free(grant, held);
    }
  }
}

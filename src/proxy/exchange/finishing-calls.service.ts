import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';

/** Bytes that are read of one response after its client has disconnected. */
export const MAX_FINISHED_BYTES = 67_108_864;
/** One key may have this part of the finishing calls, so that it does not take those of all others. */
const SHARE_OF_KEY = 0.25;

/** Why a call is cancelled although its key or provider says `finish`. */
export type FinishLimit = 'calls' | 'key' | 'seconds' | 'bytes';

/**
 * The calls of this process whose client has disconnected and whose response is read to its end, with their limits. Nothing
 * is kept of a response but the copy from which its usage is read.
 */
@Injectable()
export class FinishingCalls {
  /** Calls that a limit has cancelled. */
  readonly cancelled: Record<FinishLimit, number> = { calls: 0, key: 0, seconds: 0, bytes: 0 };
  private readonly byKey = new Map<string, number>();
  private finishing = 0;
  private readonly most: number;
  private readonly mostOfKey: number;
  private readonly maxMs: number;

  constructor(@InjectSettings() { finishMaxCalls, finishMaxSeconds }: Settings) {
    this.most = finishMaxCalls;
    this.mostOfKey = Math.max(1, Math.floor(finishMaxCalls * SHARE_OF_KEY));
    this.maxMs = finishMaxSeconds * 1_000;
  }

  /** Calls that are being finished. */
  get count(): number {
    return this.finishing;
  }

  /**
   * Counts one more call, which must end().
   *
   * @param onLimit called once if the call takes too long or its response is too long
   * @returns null if there are too many such calls, of the key or altogether
   */
  start(keyId: string, onLimit: () => void): FinishingCall | null {
    const ofKey = this.byKey.get(keyId) ?? 0;
    const limit = this.finishing >= this.most ? 'calls' : ofKey >= this.mostOfKey ? 'key' : null;
    if (limit !== null) {
      this.cancelled[limit]++;
      return null;
    }
    this.finishing++;
    this.byKey.set(keyId, ofKey + 1);
    const reached = (reason: FinishLimit) => {
      this.cancelled[reason]++;
      onLimit();
    };
    return new FinishingCall(this.maxMs, reached, () => this.ended(keyId));
  }

  private ended(keyId: string): void {
    this.finishing--;
    const left = this.byKey.get(keyId)! - 1;
    if (left === 0) this.byKey.delete(keyId);
    else this.byKey.set(keyId, left);
  }
}

/** One call whose client has disconnected, and whose response is read to its end. */
export class FinishingCall {
  private bytes = 0;
  private isEnded = false;
  private readonly timer: NodeJS.Timeout;

  constructor(
    maxMs: number,
    private readonly onLimit: (reason: FinishLimit) => void,
    private readonly onEnd: () => void,
  ) {
    this.timer = setTimeout(onLimit, maxMs, 'seconds');
  }

  /** Counts bytes that have arrived since the client disconnected. */
  received(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > MAX_FINISHED_BYTES) this.onLimit('bytes');
  }

  /** The call is over. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    clearTimeout(this.timer);
    this.onEnd();
  }
}

import { Injectable } from '@nestjs/common';
import { FairShares } from './fair-shares.js';

const MIB = 1024 * 1024;

/**
 * Memory of this process for responses. Clients that do not read hold it for as long as CLIENT_IDLE_TIMEOUT_MS, so stored
 * responses that are being sent cannot take the memory of new calls.
 */
@Injectable()
export class ResponseMemory {
  /** Copies of responses that are to be stored. */
  readonly copies = new FairShares(192 * MIB);
  /** Stored responses that are being sent. */
  readonly replays = new FairShares(128 * MIB);
}

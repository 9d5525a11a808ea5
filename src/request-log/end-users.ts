import { createHmac, hkdfSync } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import { required, type Settings } from '../config/settings.js';
import type { Attribution } from './attribution.js';

/** Stores end users as REQUEST_LOG_USERS says: as they are, as a keyed hash, or not at all. */
@Injectable()
export class EndUsers {
  private readonly mode: Settings['requestLogUsers'];
  private readonly key: Buffer | null;

  constructor(@InjectSettings() env: Settings) {
    this.mode = env.requestLogUsers;
    this.key =
      this.mode === 'hashed'
        ? Buffer.from(hkdfSync('sha256', required(env, 'masterKey'), '', 'postern end users', 32))
        : null;
  }

  /** @returns what a row may show */
  shown(attribution: Attribution): Attribution {
    const { endUser } = attribution;
    if (this.mode === 'plain' || endUser === null) return attribution;
    // 128 bits: no two users of an installation share a hash.
    const hash = this.key && createHmac('sha256', this.key).update(endUser).digest('hex').slice(0, 32);
    return { ...attribution, endUser: hash };
  }
}

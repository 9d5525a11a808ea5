import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import { serialized } from './provider-rows.js';
import { ProviderSecrets } from './provider-secrets.service.js';
import { type ProviderRow, SELECT_PROVIDERS } from './provider-view.js';

/** Names of providers, and of what else has secrets, by the outcome for their secrets. */
export interface Resealed {
  resealed: string[];
  /** Already encrypted with the current master key. */
  current: string[];
  /** Encrypted with neither MASTER_KEY nor MASTER_KEY_PREVIOUS. */
  unreadable: string[];
}

const LIST_SEALED = 'SELECT id, name FROM provider WHERE sealed_secret IS NOT NULL ORDER BY name';
const FIND = `${SELECT_PROVIDERS} WHERE id = $1`;
/** No setting changes, so the version stays. */
const RESEAL = 'UPDATE provider SET sealed_secret = $2 WHERE id = $1';

/** Re-encrypts stored secrets with the current master key. */
@Injectable()
export class ResealService {
  /** Re-encrypt the secrets of other modules: each adds its names to the outcome. */
  readonly others: ((done: Resealed, by: Actor) => Promise<void>)[] = [];

  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: ProviderSecrets,
  ) {}

  /**
   * Works row by row, so it can be stopped and run again. Gateways pick up each change like any other.
   *
   * @throws ServiceError invalid without a master key
   */
  async reseal(by: Actor): Promise<Resealed> {
    const done: Resealed = { resealed: [], current: [], unreadable: [] };
    const sealed = await this.dataSource.query<{ id: string; name: string }[]>(LIST_SEALED);
    for (const { id, name } of sealed) {
      const outcome = await this.resealOne(id, by);
      if (outcome !== null) done[outcome].push(name);
    }
    for (const reseal of this.others) await reseal(done, by);
    return done;
  }

  /** @returns null if the provider or its secret was removed meanwhile */
  private resealOne(id: string, by: Actor): Promise<keyof Resealed | null> {
    return serialized(this.dataSource, async (manager) => {
      const [row] = await manager.query<ProviderRow[]>(FIND, [id]);
      if (!row?.sealed_secret) return null;
      const before = this.secrets.viewOf(row);
      if (before.secret_state === 'unreadable') return 'unreadable';
      if (this.secrets.isCurrent(row.sealed_secret)) return 'current';
      const secret = this.secrets.open(id, row.sealed_secret);
      await manager.query(RESEAL, [id, this.secrets.seal(id, secret)]);
      await recordChange(manager, by, { action: 'resealed', type: 'provider', before, after: before });
      return 'resealed';
    });
  }
}

import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { DataSource } from 'typeorm';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import { RowSecrets } from '../database/row-secrets.js';
import { serialized } from './provider-rows.js';

/** Names of providers, and of what else has secrets, by the outcome for their secrets. */
export interface Resealed {
  resealed: string[];
  /** Already encrypted with the current master key. */
  current: string[];
  /** Encrypted with neither MASTER_KEY nor MASTER_KEY_PREVIOUS. */
  unreadable: string[];
}

/** Re-encrypts what is sealed in the rows of every module with the current master key. */
@Injectable()
export class ResealService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly discovery: DiscoveryService,
  ) {}

  /**
   * Works row by row, so it can be stopped and run again. Gateways pick up each change like any other.
   *
   * @throws ServiceError invalid without a master key
   */
  async reseal(by: Actor): Promise<Resealed> {
    const done: Resealed = { resealed: [], current: [], unreadable: [] };
    for (const { instance } of this.discovery.getProviders()) {
      if (!(instance instanceof RowSecrets)) continue;
      const { table, label, column } = instance;
      const rows = await this.dataSource.query<{ id: string; label: string }[]>(
        `SELECT id, ${label} AS label FROM ${table} WHERE ${column} IS NOT NULL ORDER BY label`,
      );
      for (const row of rows) {
        const outcome = await this.resealOne(instance, row.id, by);
        if (outcome !== null) done[outcome].push(row.label);
      }
    }
    return done;
  }

  /**
   * Takes the lock with which `postern apply` begins: it locks the table as well.
   *
   * @returns null if the row or its secret was removed meanwhile
   */
  private resealOne(rows: RowSecrets<unknown>, id: string, by: Actor): Promise<keyof Resealed | null> {
    const { table, name, column } = rows;
    return serialized(this.dataSource.manager, async (manager) => {
      const [row] = await manager.query<{ name: string; sealed: Buffer | null }[]>(
        `SELECT ${name} AS name, ${column} AS sealed FROM ${table} WHERE id = $1 FOR UPDATE`,
        [id],
      );
      if (!row?.sealed) return null;
      const value = rows.tryOpen(id, row.sealed);
      if (value === undefined) return 'unreadable';
      if (rows.isCurrent(row.sealed)) return 'current';
      // No setting changes, so the version stays.
      await manager.query(`UPDATE ${table} SET ${column} = $2 WHERE id = $1`, [id, rows.seal(id, value)]);
      const shown = { id, name: row.name };
      await recordChange(manager, by, { action: 'resealed', type: table, before: shown, after: shown });
      return 'resealed';
    });
  }
}

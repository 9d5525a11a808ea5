import { ChangeFeed } from '../../src/database/change-feed.js';
import { eventually } from './eventually.js';
import type { TestGateway } from './gateway.js';

/** Waits until the gateway's caches reflect all changes that Postgres has counted: of these counters, or of all. */
export async function changesApplied({ gateway, database }: TestGateway, ...names: string[]): Promise<void> {
  const counters = await database.query<{ name: string; value: string }>(
    'SELECT name, value FROM change_counter',
  );
  const feed = gateway.app.get(ChangeFeed);
  for (const { name, value } of counters) {
    if (names.length > 0 && !names.includes(name)) continue;
    await eventually(() => feed.reflects(name, BigInt(value)));
  }
}

import type { OnDisconnect } from './on-disconnect.js';
import { countOfChanges } from '../database/change-counter.js';
import type { AuthSettings, ProviderAuth } from './credentials/auth-kinds.js';
import { type CredentialSources, storedCredential } from './credentials/credential-sources.service.js';
import type { Provider } from './provider.js';
import { makeProvider } from './provider.js';
import { normaliseProviderUrl } from '../platform/provider-url.js';

/** Every stored provider in one snapshot, with the count of changes it reflects. No row: a null id. */
export const READ_PROVIDERS = `
  SELECT c.value AS counted, p.id, p.name, p.url, p.auth, p.auth_settings, p.sealed_secret, p.is_default, p.enabled, p.catalog,
    p.on_disconnect, p.team_id, p.version
  FROM (${countOfChanges('providers')}) c LEFT JOIN provider p ON true`;

export interface DirectoryRow {
  counted: string;
  id: string | null;
  name: string;
  url: string;
  auth: ProviderAuth;
  auth_settings: AuthSettings | null;
  sealed_secret: Buffer | null;
  is_default: boolean;
  enabled: boolean;
  catalog: string | null;
  on_disconnect: OnDisconnect;
  team_id: string | null;
  version: number;
}

/** A stored provider as calls see it. */
export interface Entry {
  name: string;
  enabled: boolean;
  /** ID of the only team that may use it; null: all teams. */
  teamId: string | null;
  /** Its price list. */
  catalog: string | null;
  /** null: it cannot be used, `problem` says why. */
  provider: Provider | null;
  problem: string | null;
}

/** What READ_PROVIDERS found, never changed: a newer reading replaces it whole. */
export interface Directory {
  counted: bigint;
  byName: ReadonlyMap<string, Entry>;
  /** The one with the default flag. */
  fallback: Entry | null;
}

/**
 * @param open opens a row's secret
 * @param sources of credentials, which are kept from reading to reading
 * @returns one entry for each row: a row that cannot be used takes no other with it
 */
export function directoryOf(
  rows: readonly DirectoryRow[],
  open: (id: string, sealed: Buffer) => string,
  sources: Sources,
): Directory {
  const byName = new Map<string, Entry>();
  let fallback: Entry | null = null;
  for (const row of rows) {
    if (row.id === null) continue;
    const entry = entryOf(row, row.id, open, sources);
    byName.set(row.name, entry);
    if (row.is_default) fallback = entry;
  }
  return { counted: BigInt(rows[0]?.counted ?? 0), byName, fallback };
}

type Sources = ReturnType<CredentialSources['read']>;

function entryOf(
  row: DirectoryRow,
  id: string,
  open: (id: string, sealed: Buffer) => string,
  sources: Sources,
): Entry {
  const { name, enabled, catalog, on_disconnect: onDisconnect, team_id: teamId } = row;
  const known = { name, enabled, teamId, catalog };
  try {
    // Checked again here: whoever writes to the table directly must not lead calls to where no provider may be.
    const { url, problem } = normaliseProviderUrl(row.url);
    if (url === undefined) return { ...known, provider: null, problem: `its url ${problem}` };
    const secret = row.sealed_secret && open(id, row.sealed_secret);
    const source = sources.of(id, storedCredential(row, url, secret));
    const revision = `${id} ${row.version}`;
    return {
      ...known,
      provider: makeProvider(name, url, row.auth, secret, source, revision, onDisconnect, teamId),
      problem: null,
    };
  } catch (error) {
    return {
      ...known,
      provider: null,
      problem: `its credential cannot be used: ${(error as Error).message}`,
    };
  }
}

import { Command } from 'commander';
import { cliCommand, shellQuoted } from '../../platform/cli-command.js';
import type { Found, SearchResult } from '../../search/search.schema.js';
import { CliError } from '../cli-error.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, parseTime, exactTime } from '../times.js';

/** `postern find <text>` */
export function findCommand(): Command {
  return new Command('find')
    .description('find a call, team, key, model, end user or session by an ID or a name')
    .argument('<text>', "an ID of a call or of the provider, a key's first characters, or a name")
    .option('--before <time>', 'search the log up to this time, to continue a search')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Names of teams, keys and models are found by a part of them. IDs, end users and
sessions must be whole. The newest part of the log is searched for these; the
output says how far.

A whole key is found by postern keys find, which reads it from standard input.

Examples:
  postern find req_011CQ3b8
  postern find 01890a5d-ac96-774b-bcce-b302099a8057
  postern find ads/note`,
    )
    .action(action(find));
}

async function find({ api, out }: Session, { before }: { before?: string }, text?: string): Promise<void> {
  // The text is not repeated: it may be a whole secret.
  if (/pt[nrd]_[0-9A-Za-z]{9}/.test(text!))
    throw new CliError('this looks like a whole secret; "keys find" reads a key from standard input');
  const result = await api.get<SearchResult>('search', {
    q: text!,
    ...(before !== undefined && { before: parseTime(before, -1, '--before', await api.zone()) }),
  });
  if (out.isJson) return out.json(result);
  out.page({ ...result, next_cursor: null }, { noun: 'matches', columns: COLUMNS });
  const { log, data } = result;
  if (log !== null && !log.whole && !data.some(({ kind }) => OF_LOG.includes(kind)))
    out.note(
      `\nThe log was searched from ${exactTime(log.from)} on. To go on: ${cliCommand(`find ${shellQuoted(text!)} --before ${log.from}`)}`,
    );
}

/** What only the log has: the search ends with the first. */
const OF_LOG: readonly Found['kind'][] = ['request', 'end_user', 'session'];

const COLUMNS: readonly Column<Found>[] = [
  { head: 'KIND', cell: ({ kind }) => kind.replace('_', ' ') },
  { head: 'NAME', cell: nameOf, min: 12 },
  { head: 'LAST CALL', cell: ({ at }) => minuteTime(at) },
  { head: 'ID', cell: ({ id }) => id },
];

function nameOf({ kind, name, team }: Found): string {
  return kind === 'key' ? `${team}/${name}` : name;
}

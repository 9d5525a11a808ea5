import { Command } from 'commander';
import type { IssuedTokenView, TokenView } from '../../admin/tokens/tokens.schema.js';
import type { Page } from '../../database/page.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, parseTime } from '../times.js';

interface NewTokenOptions {
  name: string;
  role: string;
  teams?: string;
  expiresAt?: string;
}

/** `postern tokens …` */
export function tokensCommand(): Command {
  const tokens = new Command('tokens').description('tokens of the admin API, for people and programs');

  tokens
    .command('create')
    .description('create a token and print it once')
    .requiredOption('--name <name>', 'token name, which the audit log shows')
    .requiredOption('--role <role>', 'admin, viewer, lead, team or metrics')
    .option('--teams <names>', 'teams of the roles lead and team, separated by commas')
    .option('--expires-at <time>', 'expiry: 24h, 30d, 6M, 2030-01-31, 2030-01-31T12:00:00Z')
    .option('--json', 'print the token object with "token" as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern tokens create --name prometheus --role metrics
  postern tokens create --name jane --role team --teams search,ads --expires-at 90d
  postern tokens create --name lea --role lead --teams search
  TOKEN=$(postern tokens create --name ci --role viewer --quiet)`,
    )
    .action(action(create));

  addPageOptions(tokens.command('list').description('list tokens, newest first, without their secrets'))
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern tokens list --all')
    .action(
      action<PageOptions>(async ({ api, out }, paging) => {
        const page = await listPages<Page<TokenView>>(api, 'tokens', {}, paging);
        out.page(page, { noun: 'tokens', columns: COLUMNS });
      }),
    );

  tokens
    .command('revoke')
    .description('revoke a token permanently and end its sessions')
    .argument('<token>', 'name or ID of the token')
    .option('--yes', 'do not ask')
    .option('--json', 'print the revoked token as JSON')
    .addHelpText('after', '\nExample:\n  postern tokens revoke prometheus')
    .action(action(revoke));

  return tokens;
}

const COLUMNS: readonly Column<TokenView>[] = [
  { head: 'PREFIX', cell: ({ prefix }) => prefix },
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'ROLE', cell: ({ role }) => role },
  { head: 'TEAMS', cell: ({ teams }) => teams?.map(({ name }) => name).join(',') ?? '', drop: 2 },
  { head: 'EXPIRES', cell: ({ expires_at: at }) => minuteTime(at) },
  { head: 'LAST USED', cell: ({ last_used_at: at }) => minuteTime(at) },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

async function create({ api, out }: Session, { name, role, teams, expiresAt }: NewTokenOptions) {
  const token = await api.post<IssuedTokenView>('tokens', {
    name,
    role,
    ...(teams !== undefined && { teams: teams.split(',').map((team) => team.trim()) }),
    ...(expiresAt !== undefined && { expires_at: parseTime(expiresAt, 1, '--expires-at', await api.zone()) }),
  });
  if (out.isJson) out.json(token);
  else if (out.isQuiet) console.log(token.token);
  else console.log(`Created token ${token.name} (${token.id}):\n\n  ${token.token}\n`);
  out.note('Save it now: Postern stores only its digest and will not show it again.');
}

async function revoke(session: Session, _: object, text?: string) {
  const { api, out } = session;
  const token = await findToken(session, text!);
  await session.confirm(`Revoke token ${token.name} (${token.prefix}…)? Its sessions end at once.`);
  await api.delete(path('tokens', token.id));
  out.result(token, () => `Revoked token ${token.name} (${token.prefix}…).`);
}

async function findToken({ api }: Session, text: string): Promise<TokenView> {
  for await (const { data } of api.pages<Page<TokenView>>('tokens', {}, true)) {
    const found = data.find(({ id, name }) => id === text.toLowerCase() || name === text);
    if (found !== undefined) return found;
  }
  // The text is not repeated: it may be a whole token.
  throw new CliError('no token has this name or ID; list the tokens to find it');
}

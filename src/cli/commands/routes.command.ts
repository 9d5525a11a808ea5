import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import type { RouteView } from '../../routes/routes.schema.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import type { Output } from '../output.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, exactTime } from '../times.js';
import { notePermittedKeys } from './key-output.js';

interface RouteOptions {
  targets?: string[];
  strategy?: string;
  retryOn?: string;
  attempts?: string;
  dialect?: string;
  default?: boolean;
}

const NAME_ARGUMENT = ['<name>', 'route name'] as const;
const OPTIONS = [
  ['--targets <targets...>', 'providers in order, each as <provider> or <provider>:<model>=<its name>,…'],
  ['--strategy <strategy>', 'order (default): the first that does not rest; spread: by session, else by key'],
  [
    '--retry-on <causes>',
    'connect, refused, failed, separated by commas, or none (default: connect,refused)',
  ],
  ['--attempts <n>', 'targets that a call is sent to at most (default: 2)'],
  ['--dialect <api>', 'openai, anthropic or any (default): the API of the targets'],
] as const;

/** `postern routes …` */
export function routesCommand(): Command {
  const routes = new Command('routes').description('several providers under one name, with retries');

  const add = routes.command('add').description('add a route').argument('<name>', 'name in /p/<name>/…');
  for (const [flags, about] of OPTIONS) add.option(flags, about);
  add
    .option('--default', 'make it the default for /v1')
    .option('--json', 'print the route as JSON')
    .addHelpText(
      'after',
      `
Examples:
  postern routes add main --targets openai azure:gpt-5.6=gpt-5.6-eu --default
  postern routes add pool --targets box-1 box-2 box-3 --strategy spread --attempts 3`,
    )
    .action(
      action(async ({ api, out }: Session, options: RouteOptions, name?: string) => {
        if (options.targets === undefined)
          throw new CliError('--targets must be given, for example --targets openai azure');
        const route = await api.post<RouteView>('routes', { name, ...settingsOf(options) });
        out.result(route, () => `Added route ${route.name} (${route.targets.map(shownTarget).join(', ')}).`);
        out.note(
          `Send calls to ${route.default ? '/v1/… (unless PROVIDER_URL is set) or ' : ''}/p/${route.name}/…`,
        );
      }),
    );

  routes
    .command('list')
    .description('list routes')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExample:\n  postern routes list')
    .action(
      action(async ({ api, out }) => {
        out.page(await api.get<Page<RouteView>>('routes'), { noun: 'routes', columns: COLUMNS });
      }),
    );

  routes
    .command('show')
    .description('show a route')
    .argument(...NAME_ARGUMENT)
    .option('--json', 'print the route as JSON')
    .addHelpText('after', '\nExample:\n  postern routes show main')
    .action(
      action(async ({ api, out }, _, name) => {
        const route = await api.get<RouteView>(path('routes', name));
        out.result(route, () => routeLines(out, route));
      }),
    );

  const update = routes
    .command('update')
    .description('change a route')
    .argument(...NAME_ARGUMENT);
  for (const [flags, about] of OPTIONS) update.option(flags, about);
  update
    .option('--default', 'make it the default for /v1')
    .option('--no-default', 'no longer the default')
    .option('--json', 'print the route as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  postern routes update main --attempts 3 --retry-on connect,refused,failed',
    )
    .action(
      action(async ({ api, out }: Session, options: RouteOptions, name?: string) => {
        const change = settingsOf(options);
        if (Object.keys(change).length === 0) {
          throw new CliError(
            'nothing to change: give --targets, --strategy, --retry-on, --attempts, --dialect, --default or --no-default',
          );
        }
        const route = await api.patch<RouteView>(path('routes', name!), change);
        out.result(
          route,
          () => `Updated route ${route.name} (${route.targets.map(shownTarget).join(', ')}).`,
        );
      }),
    );

  routes
    .command('remove')
    .description('remove a route; calls to it are then rejected')
    .argument(...NAME_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern routes remove main')
    .action(
      action(async (session, _, name) => {
        await session.confirm(`Remove route ${name}? Calls to it are rejected at once.`);
        await session.api.delete(path('routes', name));
        session.out.result({ removed: name }, () => `Removed route ${name}.`);
        await notePermittedKeys(session, name);
      }),
    );

  return routes;
}

function settingsOf({
  targets,
  strategy,
  retryOn,
  attempts,
  dialect,
  default: isDefault,
}: RouteOptions): object {
  return {
    ...(targets !== undefined && { targets: targets.map(targetOf) }),
    ...(strategy !== undefined && { strategy }),
    ...(retryOn !== undefined && {
      retry_on: retryOn === 'none' ? [] : retryOn.split(',').map((cause) => cause.trim()),
    }),
    ...(attempts !== undefined && { max_attempts: Number(attempts) }),
    ...(dialect !== undefined && { dialect }),
    ...(isDefault !== undefined && { default: isDefault }),
  };
}

function targetOf(text: string): object {
  const colon = text.indexOf(':');
  if (colon === -1) return { provider: text };
  const pairs = text.slice(colon + 1).split(',');
  if (!pairs.every((pair) => pair.includes('=')))
    throw new CliError(
      `--targets: ${text} must be <provider>:<model>=<its name>, more of them separated by commas`,
    );
  const models = pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]);
  return { provider: text.slice(0, colon), models: Object.fromEntries(models) as object };
}

/** As --targets takes it. */
function shownTarget({ provider, models }: RouteView['targets'][number]): string {
  const pairs = Object.entries(models ?? {}).map(([from, to]) => `${from}=${to}`);
  return pairs.length === 0 ? provider : `${provider}:${pairs.join(',')}`;
}

const COLUMNS: readonly Column<RouteView>[] = [
  { head: 'NAME', cell: ({ name }) => name },
  { head: 'TARGETS', cell: ({ targets }) => targets.map(shownTarget).join(' '), min: 16 },
  { head: 'STRATEGY', cell: ({ strategy }) => strategy },
  { head: 'RETRY ON', cell: ({ retry_on: causes }) => causes.join(',') || 'none', drop: 2 },
  { head: 'ATTEMPTS', cell: ({ max_attempts: attempts }) => attempts, align: 'right', drop: 3 },
  { head: 'DEFAULT', cell: ({ default: isDefault }) => isDefault },
  { head: 'UPDATED', cell: ({ updated_at: at }) => minuteTime(at), drop: 1 },
];

function routeLines(out: Output, route: RouteView): string {
  return out.fields([
    ['name', route.name],
    ['targets', route.targets.map(shownTarget).join(' ')],
    ['strategy', route.strategy],
    ['retry on', route.retry_on.join(', ') || 'none'],
    ['attempts', route.max_attempts],
    ['dialect', route.dialect],
    ['default', route.default],
    ['created', exactTime(route.created_at)],
    ['updated', exactTime(route.updated_at)],
  ]);
}

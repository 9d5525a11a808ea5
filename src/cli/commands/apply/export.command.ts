import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type { GroupView } from '../../../groups/groups.schema.js';
import type { TrustView } from '../../../identity/trusts/trusts.schema.js';
import type { KeyView } from '../../../keys/keys.schema.js';
import type { ShownLimits } from '../../../limit-rules/limit-rules.schema.js';
import type { PolicyView } from '../../../policies-by-url/policies.schema.js';
import type { PriceView } from '../../../pricing/prices.schema.js';
import type { ProviderView } from '../../../providers/providers.schema.js';
import type { RouteView } from '../../../routes/routes.schema.js';
import type { SinkView } from '../../../sinks/sinks.schema.js';
import type { SystemView } from '../../../system/system.schema.js';
import type { TeamView } from '../../../teams/teams.schema.js';
import type { WebhookView } from '../../../webhooks/webhooks.schema.js';
import { type Api, path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { jsonText, write } from '../../output.js';
import { action, type Session } from '../../session.js';
import type { ExportDocument, Item } from './export-document.js';

interface ExportOptions {
  output?: string;
  team?: string;
}

/** `postern export` */
export function exportCommand(): Command {
  return new Command('export')
    .description('write what exists as a file for apply, without secrets')
    .option('-o, --output <file>', 'write to this file and replace it; else to standard output')
    .option('--team <team>', 'only this team and its keys, by name or ID')
    .option('--json', 'write JSON')
    .addHelpText(
      'after',
      `
Applying the file to the same gateway changes nothing. What is secret stands as "{ stored: true }".

Examples:
  postern export --output postern.yaml
  postern export --team search`,
    )
    .action(action(exportAll));
}

async function exportAll(session: Session, { output, team }: ExportOptions): Promise<void> {
  const { api, out } = session;
  const { document, hints } = team === undefined ? await everything(api) : await ofTeam(api, team);
  let text: string;
  if (out.isJson) {
    text = `${jsonText(document, 2)}\n`;
  } else {
    // Only here: no other command but apply writes or reads YAML.
    const { exportText } = await import('./export-text.js');
    text = exportText(document, await headOf(api, team), (item) => hints.get(item));
  }
  if (output === undefined) {
    await write(text);
    return;
  }
  replaceFile(output, text);
  out.progress(`Wrote ${countsOf(document)} to ${output}.`);
}

interface Exported {
  document: ExportDocument;
  /** What is shown of the URLs that are left out. */
  hints: Map<Item, string>;
}

async function everything(api: Api): Promise<Exported> {
  const items = await import('./export-document.js');
  const list = async <T>(name: string) => (await api.get<Page<T>>(name)).data;
  const webhooks = await list<WebhookView>('webhooks');
  const policies = await list<PolicyView>('policies');
  const sinks = await list<SinkView>('sinks');
  const keys = await allOf<KeyView>(api, 'keys', {});
  const trusts = await allOf<TrustView>(api, 'trusts', {});
  const prices = await allOf<PriceView>(api, 'prices', { source: 'custom' });
  const installation = await api.get<ShownLimits>('limits/installation');
  const groups = await allOf<GroupView>(api, 'groups', {});
  const teams = await allOf<TeamView>(api, 'teams', {});
  const routes = await list<RouteView>('routes');
  const providers = await list<ProviderView>('providers');
  const hints = new Map<Item, string>();
  const hinted = <T extends { url: string }>(view: T, item: Item) => {
    if (typeof item.url === 'object') hints.set(item, view.url);
    return item;
  };
  const document = {
    providers: providers.filter(isStored).sort(by('name')).map(items.providerItem),
    routes: routes.sort(by('name')).map(items.routeItem),
    installation: items.installationItem(installation),
    groups: groups.sort(by('name')).map(items.groupItem),
    teams: teams.sort(by('name')).map(items.teamItem),
    prices: prices.sort(by('catalog', 'model', 'effective_from')).map(items.priceItem),
    keys: keys.filter(isConfigured).sort(by('team', 'name')).map(items.keyItem),
    trusts: trusts.sort(by('name')).map(items.trustItem),
    webhooks: webhooks
      .sort(by('url', 'format', 'id'))
      .map((webhook) => hinted(webhook, items.webhookItem(webhook))),
    policies: policies.sort(by('name')).map((policy) => hinted(policy, items.policyItem(policy))),
    sinks: sinks.sort(by('name')).map((sink) => hinted(sink, items.sinkItem(sink))),
  };
  return { document: withoutEmpty(document), hints };
}

async function ofTeam(api: Api, nameOrId: string): Promise<Exported> {
  const items = await import('./export-document.js');
  const team = await api.get<TeamView>(path('teams', nameOrId));
  const keys = await allOf<KeyView>(api, 'keys', { team: team.id });
  const document = {
    teams: [items.teamItem(team)],
    keys: keys.filter(isConfigured).sort(by('name')).map(items.keyItem),
  };
  return { document: withoutEmpty(document), hints: new Map() };
}

/** With `--prune`, an empty list is rejected. */
function withoutEmpty(document: ExportDocument): ExportDocument {
  return Object.fromEntries(Object.entries(document).filter(([, items]) => sizeOf(items) > 0));
}

/** Objects of a list, or members of what stands alone. */
function sizeOf(items: ExportDocument[string]): number {
  return Array.isArray(items) ? items.length : Object.keys(items).length;
}

/** Of a list with pages. */
async function allOf<T>(api: Api, list: string, query: object): Promise<T[]> {
  const all: T[] = [];
  for await (const { data } of api.pages<Page<T>>(list, { ...query }, true)) all.push(...data);
  return all;
}

/** Not the one of PROVIDER_URL. */
function isStored({ source }: ProviderView): boolean {
  return source === 'stored';
}

/** Revoked keys stay so, and the keys of members and of people who sign in are theirs. */
function isConfigured({ revoked_at, self_service: isOwn, origin }: KeyView): boolean {
  return revoked_at === null && !isOwn && origin === 'manual';
}

/** By these members, by code unit: the same everywhere. */
function by<M extends string>(...members: M[]): (one: Record<M, string>, other: Record<M, string>) => number {
  return (one, other) => {
    for (const member of members) {
      if (one[member] < other[member]) return -1;
      if (one[member] > other[member]) return 1;
    }
    return 0;
  };
}

/** Nothing in it changes by itself, so that the same configuration is the same file. */
async function headOf(api: Api, team: string | undefined): Promise<string[]> {
  const what = team === undefined ? '' : ' --team';
  const applied = 'Applying it changes nothing: postern apply -f FILE --dry-run';
  // Only those who may read everything may read it.
  if (team !== undefined) return [`Written by postern export${what}. ${applied}`, 'Times are in UTC.'];
  const { version, settings } = await api.get<SystemView>('system');
  const zone = settings.find(({ name }) => name === 'BUDGET_TIMEZONE')?.value ?? 'BUDGET_TIMEZONE';
  return [
    `Written by postern export, Postern ${version}. ${applied}`,
    `Times are in UTC. Days, weeks and months of budgets begin in ${zone}.`,
    'Not in it: secrets, revoked keys, keys that members created, the provider of PROVIDER_URL, prices of the catalog.',
  ];
}

function countsOf(document: ExportDocument): string {
  return Object.entries(document)
    .flatMap(([list, items]) => {
      if (!Array.isArray(items)) return [`limits of the ${list}`];
      return items.length === 0 ? [] : [`${items.length} ${items.length === 1 ? singular(list) : list}`];
    })
    .join(', ');
}

function singular(list: string): string {
  return list.replace(/ies$/, 'y').replace(/s$/, '');
}

/** @throws CliError if it cannot be written */
function replaceFile(name: string, text: string): void {
  try {
    writeFileSync(name, text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CliError(`--output: ${resolve(name)} cannot be written (${code ?? 'error'}); check the path`);
  }
}

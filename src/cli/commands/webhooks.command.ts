import { Command } from 'commander';
import { EVENT_TYPES } from '../../webhooks/event-types.js';
import type { Page } from '../../database/page.js';
import { cliCommand } from '../../platform/cli-command.js';
import type {
  CreatedWebhook,
  ListedDelivery,
  WebhookTestResult,
  WebhookView,
} from '../../webhooks/webhooks.schema.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../list-options.js';
import type { Style } from '../output.js';
import { readSecret } from '../prompt.js';
import { action, type Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime } from '../times.js';

const SHOWN_ONCE = 'Save it now: it verifies signatures, and Postern will not show it again.';
const ID_ARGUMENT = ['<id>', 'ID of the webhook'] as const;
const EXAMPLE_ID = '01890a5d-ac96-774b-bcce-b302099a8057';

interface UpdateOptions {
  events?: string;
  url?: boolean;
}

interface CreateOptions {
  events: string;
  format?: string;
}

/** `postern webhooks …` */
export function webhooksCommand(): Command {
  const webhooks = new Command('webhooks').description('where alerts are delivered');

  webhooks
    .command('list')
    .description('list webhooks with their last delivery, newest first')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExample:\n  postern webhooks list')
    .action(
      action(async ({ api, out }) => {
        const page = await api.get<Page<WebhookView>>('webhooks');
        out.page(page, { noun: 'webhooks', columns: COLUMNS });
      }),
    );

  webhooks
    .command('create')
    .description('create a webhook and print its secret once')
    .argument(
      '[url]',
      'where events are sent; without it, prompts for the URL or reads it from standard input',
    )
    .requiredOption('--events <types>', `types separated by commas: ${EVENT_TYPES.join(', ')}`)
    .option('--format <format>', 'standard (default) or slack')
    .option('--json', 'print the webhook with "secret" as JSON')
    .addHelpText(
      'after',
      `
The URL of an incoming webhook of Slack is a secret: give it at the prompt.

Examples:
  postern webhooks create https://alerts.example.com/postern --events budget.threshold,budget.exhausted
  postern webhooks create --events key.expiring --format slack`,
    )
    .action(action(create));

  webhooks
    .command('update')
    .description('change the events of a webhook, or its URL')
    .argument(...ID_ARGUMENT)
    .option('--events <types>', 'types separated by commas, in place of the present ones')
    .option('--url', 'prompt for a new URL, or read it from standard input')
    .option('--json', 'print the webhook as JSON')
    .addHelpText(
      'after',
      `\nExample:\n  postern webhooks update ${EXAMPLE_ID} --events budget.exhausted,key.expiring`,
    )
    .action(action(update));

  addPageOptions(
    webhooks
      .command('deliveries')
      .description('list the deliveries of a webhook, newest event first')
      .argument(...ID_ARGUMENT)
      .option('--state <state>', 'filter by state: waiting, delivered, retrying or failed'),
  )
    .option('--json', 'print the page as JSON')
    .addHelpText('after', `\nExample:\n  postern webhooks deliveries ${EXAMPLE_ID} --state failed`)
    .action(
      action<PageOptions & { state?: string }>(async ({ api, out }, { state, ...paging }, id) => {
        const list = path('webhooks', id, 'deliveries');
        const page = await listPages<Page<ListedDelivery>>(api, list, { state }, paging);
        out.page(page, { noun: 'deliveries', columns: DELIVERY_COLUMNS });
      }),
    );

  webhooks
    .command('replay')
    .description('send an event to a webhook again')
    .argument(...ID_ARGUMENT)
    .argument('<event>', 'ID of the event, from the deliveries')
    .option('--json', 'print the IDs as JSON')
    .addHelpText('after', `\nExample:\n  postern webhooks replay ${EXAMPLE_ID} ${EXAMPLE_ID}`)
    .action(
      action(async ({ api, out }, _, id, event) => {
        await api.post(path('webhooks', id, 'replay'), { event_id: event });
        out.result({ webhook: id, event }, () => `Event ${event} is sent again.`);
      }),
    );

  webhooks
    .command('test')
    .description('send an event of type webhook.test and report what is wrong')
    .argument(...ID_ARGUMENT)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', `\nExample:\n  postern webhooks test ${EXAMPLE_ID}`)
    .action(action(test));

  webhooks
    .command('delete')
    .description('delete a webhook with its undelivered events')
    .argument(...ID_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the ID as JSON')
    .addHelpText('after', `\nExample:\n  postern webhooks delete ${EXAMPLE_ID}`)
    .action(
      action(async (session, _, id) => {
        await session.confirm(`Delete the webhook ${id}? Its undelivered events are lost.`);
        await session.api.delete(path('webhooks', id));
        session.out.result({ deleted: id }, () => `Deleted webhook ${id}.`);
      }),
    );

  return webhooks;
}

async function create({ api, out }: Session, { events, format }: CreateOptions, given?: string) {
  const url = given ?? (await readSecret('URL')).trim();
  const webhook = await api.post<CreatedWebhook>('webhooks', {
    ...{ url, events: events.split(',').map((type) => type.trim()) },
    ...(format !== undefined && { format }),
  });
  const { id, secret } = webhook;
  if (out.isJson) out.json(webhook);
  else if (out.isQuiet) console.log(secret ?? id);
  else {
    console.log(`Created webhook ${id} (${webhook.url})${secret === null ? '.' : `:\n\n  ${secret}\n`}`);
    if (secret !== null) out.note(SHOWN_ONCE);
    out.note(`Test it: ${cliCommand(`webhooks test ${id}`)}`);
  }
}

async function update({ api, out }: Session, { events, url }: UpdateOptions, id?: string) {
  if (events === undefined && url === undefined)
    throw new CliError('nothing to change: give --events or --url');
  const webhook = await api.patch<WebhookView>(path('webhooks', id!), {
    ...(events !== undefined && { events: events.split(',').map((type) => type.trim()) }),
    ...(url === true && { url: (await readSecret('URL')).trim() }),
  });
  out.result(webhook, () => `Updated webhook ${webhook.id} (${webhook.url}).`);
}

async function test({ api, out }: Session, _: object, id?: string) {
  const result = await api.post<WebhookTestResult>(path('webhooks', id!, 'test'));
  if (!result.ok) process.exitCode = 1;
  if (out.isJson) {
    out.json(result);
    return;
  }
  const status = result.status === null ? '' : `, status ${result.status}`;
  const code = out.styled(result.code, result.ok ? 'green' : 'red');
  const line = `${code}${status}, ${Math.round(result.duration_ms)} ms\n${result.message}`;
  if (result.ok) console.log(line);
  else console.error(line);
}

function lastOf({ last_delivery: last }: WebhookView): string | null {
  if (last === null) return null;
  return last.error === null ? last.state : `${last.state}: ${last.status ?? last.error}`;
}

function styleOf({ last_delivery: last }: WebhookView): Style | undefined {
  if (last === null || last.state === 'delivered') return undefined;
  return last.state === 'failed' ? 'red' : 'yellow';
}

const DELIVERY_COLUMNS: readonly Column<ListedDelivery>[] = [
  { head: 'AT', cell: ({ created_at: at }) => minuteTime(at) },
  { head: 'TYPE', cell: ({ type }) => type },
  {
    head: 'STATE',
    cell: ({ state }) => state,
    style: ({ state }) => (state === 'failed' ? 'red' : state === 'retrying' ? 'yellow' : undefined),
  },
  { head: 'STATUS', cell: ({ status, error }) => status ?? error, drop: 3 },
  { head: 'ATTEMPTS', cell: ({ attempts }) => attempts, align: 'right', drop: 2 },
  { head: 'EVENT', cell: ({ event_id: id }) => id },
];

const COLUMNS: readonly Column<WebhookView>[] = [
  { head: 'ID', cell: ({ id }) => id },
  { head: 'URL', cell: ({ url }) => url, min: 12 },
  { head: 'LAST DELIVERY', cell: lastOf, style: styleOf },
  { head: 'AT', cell: ({ last_delivery: last }) => minuteTime(last?.attempted_at ?? null), drop: 3 },
  { head: 'WAITING', cell: ({ waiting }) => waiting, align: 'right', drop: 4 },
  { head: 'FORMAT', cell: ({ format }) => format, drop: 2 },
  { head: 'EVENTS', cell: ({ events }) => events.join(','), drop: 1 },
];

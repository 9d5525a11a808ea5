import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type {
  EndedPerson,
  PersonView,
  ShownPerson,
  SignInView,
} from '../../../identity/people/people.schema.js';
import { path } from '../../api.js';
import { addPageOptions, listPages, type PageOptions } from '../../list-options.js';
import { action, type Session } from '../../session.js';
import type { Column } from '../../table.js';
import { exactTime, minuteTime } from '../../times.js';

interface PeopleOptions extends PageOptions {
  search?: string;
  state?: string;
}

const PERSON = ['<person>', 'e-mail address or ID of the person'] as const;

/** `postern people …` */
export function peopleCommand(): Command {
  const people = new Command('people').description(
    'people who sign in by single sign-on: list them, and end those who leave',
  );

  addPageOptions(people.command('list').description('list people, newest first'))
    .option('--search <words>', 'filter by words of the name or e-mail address')
    .option('--state <active|ended>', 'filter by whether they were ended')
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern people list --state active --all')
    .action(
      action<PeopleOptions>(async ({ api, out }, options) => {
        const { search, state } = options;
        const page = await listPages<Page<PersonView>>(api, 'people', { search, state }, options);
        out.page(page, { noun: 'people', columns: COLUMNS });
      }),
    );

  people
    .command('show')
    .description('show a person, with their keys and sign-ins')
    .argument(...PERSON)
    .option('--json', 'print the person as JSON')
    .addHelpText('after', '\nExample:\n  postern people show jane@example.com')
    .action(action(show));

  people
    .command('end')
    .description('end a person who leaves: nothing of theirs works any more')
    .argument(...PERSON)
    .option('--yes', 'do not ask')
    .option('--json', 'print the person as JSON')
    .addHelpText(
      'after',
      `
Their sessions of the console and sign-ins from clients end, their own keys are revoked, and they cannot sign in. It takes
effect on every replica within a second. Repeat it at will: an HR system can call it.

Example:
  postern people end jane@example.com --yes`,
    )
    .action(action(end));

  people
    .command('reopen')
    .description('let a person sign in again')
    .argument(...PERSON)
    .option('--json', 'print the person as JSON')
    .addHelpText(
      'after',
      '\nThis includes teams where their key of sign-ins was revoked. Keys that were revoked stay revoked.\n\nExample:\n  postern people reopen jane@example.com',
    )
    .action(
      action(async ({ api, out }, _, text) => {
        const person = await api.post<PersonView>(path('people', text, 'reopen'), {});
        out.result(person, () => `${nameOf(person)} may sign in.`);
      }),
    );

  people
    .command('forget')
    .description('remove the name and e-mail address of a person who was ended')
    .argument(...PERSON)
    .option('--yes', 'do not ask')
    .option('--json', 'print the person as JSON')
    .addHelpText(
      'after',
      '\nIn the person, the names of their keys, the request log, the audit log and stored alerts.\n\nExample:\n  postern people forget jane@example.com',
    )
    .action(
      action(async (session, _, text) => {
        const { api, out } = session;
        await session.confirm(`Remove the name and e-mail address of ${text} for ever?`);
        const person = await api.post<PersonView>(path('people', text, 'forget'), {});
        out.result(person, () => `The person is now called ${person.name} (${person.id}).`);
      }),
    );

  return people;
}

async function show({ api, out }: Session, _: object, text?: string): Promise<void> {
  const person = await api.get<ShownPerson>(path('people', text!));
  const { spent_refused_at: refused } = person;
  out.result(person, () =>
    out.fields([
      ['id', person.id],
      ['name', person.name],
      ['e-mail', person.email],
      ['provider', person.issuer],
      ['ID there', person.subject],
      ['state', person.ended_at === null ? 'active' : `ended at ${exactTime(person.ended_at)}`],
      ['first seen', exactTime(person.created_at)],
      ['last sign-in', person.last_sign_in_at && exactTime(person.last_sign_in_at)],
      ['suspicious', refused && `a used refresh token was sent at ${exactTime(refused)}`],
      ...person.keys.map(
        ({ name, origin }) => [origin === 'manual' ? 'own key' : 'key of sign-ins', name] as const,
      ),
      ...person.blocked_teams.map(
        (team) => ['blocked team', `${team}: the key of sign-ins was revoked`] as const,
      ),
      ...person.sign_ins.map((signIn) => ['sign-in', lineOf(signIn)] as const),
    ]),
  );
}

function lineOf({ key, surface, client_ip: address, last_renewed_at, ended_at, end_reason }: SignInView) {
  const where = `${key}, ${surface}${address === null ? '' : ` at ${address}`}`;
  return ended_at === null
    ? `${where}, renewed ${minuteTime(last_renewed_at)}`
    : `${where}, ended ${minuteTime(ended_at)} (${end_reason})`;
}

async function end(session: Session, _: object, text?: string): Promise<void> {
  const { api, out } = session;
  const before = await api.get<ShownPerson>(path('people', text!));
  const own = before.keys.filter(({ origin }) => origin === 'manual');
  await session.confirm(
    `End ${nameOf(before)}? Sign-ins that end: ${before.live_sign_ins}. Own keys that are revoked permanently: ${own.length}.`,
  );
  const person = await api.post<EndedPerson>(path('people', before.id, 'end'), {});
  const { sign_ins, sessions, keys } = person.ended;
  out.result(
    person,
    () => `Ended ${nameOf(person)}. Sessions: ${sessions}. Sign-ins: ${sign_ins}. Own keys: ${keys}.`,
  );
}

function nameOf({ name, email }: PersonView): string {
  return email === null || email === name ? name : `${name} (${email})`;
}

const COLUMNS: readonly Column<PersonView>[] = [
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'E-MAIL', cell: ({ email }) => email },
  { head: 'STATE', cell: ({ ended_at }) => (ended_at === null ? 'active' : 'ended') },
  { head: 'SIGN-INS', cell: ({ live_sign_ins: count }) => String(count) },
  { head: 'LAST SIGN-IN', cell: ({ last_sign_in_at: at }) => minuteTime(at) },
  { head: 'SUSPICIOUS', cell: ({ spent_refused_at: at }) => minuteTime(at), drop: 2 },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

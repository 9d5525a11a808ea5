import { Command } from 'commander';
import type { AuditView } from '../../audit/audit.schema.js';
import type { Page } from '../../database/page.js';
import { addPageOptions, addRangeOptions, listPages, type PageOptions } from '../list-options.js';
import { action } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, parseRange } from '../times.js';

interface ListOptions extends PageOptions {
  actor?: string;
  action?: string;
  subjectType?: string;
  subjectName?: string;
  subjectId?: string;
  from?: string;
  to?: string;
}

/** `postern audit …` */
export function auditCommand(): Command {
  const audit = new Command('audit').description('the audit log: who changed what, and who signed in');
  const list = audit
    .command('list')
    .description('list changes, newest first')
    .option('--actor <actor>', 'filter by who made the change, for example admin-token or cli:root')
    .option('--action <action>', 'filter by what was done, for example created, revoked or signed_in')
    .option('--subject-type <type>', 'filter by what was changed, for example team, key, token or session')
    .option('--subject-name <name>', 'filter by the name it had at that time; of a key, team/name')
    .option('--subject-id <id>', 'filter by its ID');
  addPageOptions(addRangeOptions(list))
    .option('--json', 'print the page as JSON, with all values before and after')
    .addHelpText(
      'after',
      '\nExamples:\n  postern audit list --from 7d\n  postern audit list --subject-type key --action revoked --json',
    )
    .action(
      action<ListOptions>(async ({ api, out }, options) => {
        const { actor, action, subjectType, subjectName, subjectId } = options;
        const query = {
          ...{ actor, action, subject_type: subjectType, subject_name: subjectName, subject_id: subjectId },
          ...parseRange(options, await api.zone()),
        };
        const page = await listPages<Page<AuditView>>(api, 'audit', query, options);
        out.page(page, { noun: 'changes', columns: COLUMNS });
      }),
    );
  return audit;
}

const COLUMNS: readonly Column<AuditView>[] = [
  { head: 'AT', cell: ({ at }) => minuteTime(at) },
  { head: 'ACTOR', cell: ({ actor }) => actor, min: 11 },
  {
    head: 'ACTION',
    cell: ({ action }) => action,
    style: ({ action }) => (action === 'revoked' || action === 'removed' ? 'red' : undefined),
  },
  { head: 'SUBJECT', cell: ({ subject_type: type, subject_name: name }) => `${type} ${name}`, min: 12 },
  { head: 'CHANGE', cell: changeOf, min: 12 },
  { head: 'ADDRESS', cell: ({ client_ip: ip }) => ip, drop: 2 },
  { head: 'SUBJECT ID', cell: ({ subject_id: id }) => id, drop: 1 },
];

/** What differs, as `name: before → after`; nothing for a new or removed object, whose values all differ. */
function changeOf({ before, after }: AuditView): string | null {
  if (before === null || after === null) return null;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names.map((name) =>
    name in before
      ? `${name}: ${shown(before[name])} → ${shown(after[name])}`
      : `${name}: ${shown(after[name])}`,
  );
  return changes.length === 0 ? null : changes.join(', ');
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

import { escaped, page } from '../plain-page.js';
import type { NoRole } from './no-role.js';

/** Shown after the callback. It continues by itself, from this origin, so that the browser sends the session cookie. */
export function continuePage(path: string): string {
  return page(
    'Signed in',
    `<meta http-equiv="refresh" content="0; url=${escaped(path)}">`,
    `<p><a href="${escaped(path)}">Continue</a></p>`,
  );
}

const BACK = '<p><a class="button" href="/console">Back to the console</a></p>';

export function failurePage(message: string): string {
  return page('Not signed in', '', `<p>${escaped(message)}</p>\n${BACK}`);
}

/** A provider may send hundreds. */
const MAX_SHOWN = 50;

/** Says who one is, which groups came, and what an administrator can do about it. */
export function noRolePage({ message, user, claim, groups, missing }: NoRole): string {
  const shown = groups?.slice(0, MAX_SHOWN) ?? [];
  const more = (groups?.length ?? 0) - shown.length;
  const received =
    groups === null
      ? `<p>The sign-in provider sent no groups: its claim <code>${escaped(claim)}</code> is absent or has no text.</p>`
      : `<p>Groups in the claim <code>${escaped(claim)}</code>:</p>
<ul>${shown.map((group) => `<li><code>${escaped(shortened(group))}</code></li>`).join('')}${more > 0 ? `<li>and ${more} more</li>` : ''}</ul>`;
  const teams = missing
    .slice(0, MAX_SHOWN)
    .map((team) => `<p>There is no team <code>${escaped(shortened(team))}</code> here.</p>`)
    .join('\n');
  return page(
    'Not signed in',
    '',
    `<p>You are <strong>${escaped(user)}</strong>. ${escaped(message)}</p>
${received}
${teams}
<h2>Ask an administrator</h2>
<p>Send them this page. They can ${groups === null ? 'let the provider send the groups, or name another claim in <code>OIDC_ROLE_CLAIM</code>' : 'add one of these groups to <code>OIDC_ADMINS</code> or <code>OIDC_VIEWERS</code>, or put you into a group of a team'}${missing.length > 0 ? ', or create the team' : ''}. The log of the gateway has the groups and the mapping.</p>
${BACK}`,
  );
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

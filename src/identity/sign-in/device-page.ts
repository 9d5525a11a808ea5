import { PAGE_HEADERS } from '../../admin/page-headers.js';
import { escaped, page } from '../../admin/plain-page.js';
import type { IdentifiedRequest, NoTeam } from './device-requests.service.js';

export const DEVICE_HEADERS = {
  ...PAGE_HEADERS,
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};

const TITLE = 'Sign in a terminal';

const AGAIN = '<p><a href="/device">Type another code</a></p>';

/** What clients call themselves. Anybody can call theirs so. */
const CLIENTS = new Map([
  ['claude_code', 'Claude Code'],
  ['postern', 'postern sign-in'],
]);

/** Where the code is typed. It is never filled in from a link. */
export function codePage(error: string | null): string {
  const message = error === null ? '' : `<p class="error" id="error" role="alert">${escaped(error)}</p>\n`;
  const described = error === null ? '' : ' aria-describedby="error" aria-invalid="true"';
  return page(
    TITLE,
    '',
    `<p>Type the code that your terminal shows. Go on only if you started this yourself.</p>
${message}<form method="post" action="/device" autocomplete="off">
<label for="code">Code</label>
<input type="text" id="code" name="user_code" maxlength="20" required autofocus autocapitalize="characters" spellcheck="false"${described}>
<button class="main">Continue</button>
</form>`,
  );
}

/** Goes to the provider. A redirect after a form would be stopped by `form-action`. */
export function toProviderPage(url: string): string {
  return page(
    TITLE,
    `<meta http-equiv="refresh" content="0; url=${escaped(url)}">`,
    `<p><a href="${escaped(url)}">Continue to single sign-on</a></p>`,
  );
}

/** Goes to the confirmation, from this origin, so that the browser sends its cookie. */
export function toConfirmationPage(): string {
  return page(
    TITLE,
    '<meta http-equiv="refresh" content="0; url=/device/confirm">',
    '<p><a href="/device/confirm">Continue</a></p>',
  );
}

/** @param token of the form, bound to the cookie */
export function confirmPage(request: IdentifiedRequest, token: string): string {
  const { person, email, surface, client_ip, program, created_at } = request;
  const facts = [
    ['Account', email === null || email === person ? person : `${person} (${email})`],
    ['Client', `${CLIENTS.get(surface) ?? surface}, it says`],
    ['Address', client_ip ?? 'not recorded'],
    ['Program', program ?? 'not recorded'],
    ['Started', `${created_at.toISOString().slice(0, 16).replace('T', ' ')} UTC`],
  ];
  const rows = facts.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value!)}</dd>`);
  return page(
    'Sign in this terminal?',
    '',
    `<p>Whoever started this gets a key of yours. Confirm only a terminal that you started just now.</p>
<dl>${rows.join('')}</dl>
<form method="post" action="/device/confirm">
<input type="hidden" name="form_token" value="${escaped(token)}">
${teamChoice(request.teams ?? [])}
<button class="main" name="action" value="approve">Sign in this terminal</button>
<button name="action" value="deny" formnovalidate>I did not start this</button>
</form>`,
  );
}

function teamChoice(teams: { id: string; name: string }[]): string {
  const [only, ...others] = teams;
  if (only !== undefined && others.length === 0)
    return `<p>Team: <strong>${escaped(only.name)}</strong></p><input type="hidden" name="team" value="${only.id}">`;
  const choices = teams.map(
    ({ id, name }) =>
      `<label><input type="radio" name="team" value="${id}" required> ${escaped(name)}</label>`,
  );
  return `<fieldset><legend>Team that pays</legend>${choices.join('')}</fieldset>`;
}

export function approvedPage(): string {
  return page('Signed in', '', '<p>Go back to the terminal. You can close this window.</p>');
}

export function deniedPage(): string {
  return page(
    'Not signed in',
    '',
    '<p>The terminal was not signed in. If somebody sent you the code, tell an administrator.</p>',
  );
}

export function failedPage(message: string): string {
  return page('Not signed in', '', `<p class="error">${escaped(message)}</p>\n${AGAIN}`);
}

/** Says who one is, and what an administrator can do about it. */
export function noTeamPage({ message, user, names }: NoTeam): string {
  const shown = names.slice(0, 50).map((name) => `<li><code>${escaped(name)}</code></li>`);
  const remedy =
    shown.length === 0
      ? '<p>Your groups name no team. An administrator can put you into the group of a team.</p>'
      : `<p>Teams that your groups name:</p><ul>${shown.join('')}</ul><p>An administrator can create one of them, or set its <code>sign_in</code>. If your key there was revoked, they can let you in again.</p>`;
  return page(
    'Not signed in',
    '',
    `<p class="error">You are <strong>${escaped(user)}</strong>. ${escaped(message)}</p>
${remedy}
<p>The log of the gateway has your groups and how they are mapped.</p>
${AGAIN}`,
  );
}

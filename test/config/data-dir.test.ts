import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataDirError, openDataDir } from '../../src/platform/data-dir.js';
import { removeFolder, temporaryFolder } from './temporary-folder.js';

let base: string;

beforeEach(async () => {
  base = await temporaryFolder();
});
afterEach(() => removeFolder(base));

const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe('opening', () => {
  it('makes a private folder and takes it again', async () => {
    const path = join(base, 'deep', 'data');
    expect((await openDataDir(path)).path).toBe(path);
    expect(await mode(path)).toBe('700');
    expect(await readFile(join(path, 'postern-data'), 'utf8')).toBe('postern-data 1\n');
    await writeFile(join(path, 'anything'), '');
    await openDataDir(path);
  });

  it('takes an empty folder, also one reached through a symbolic link or at the root of a volume', async () => {
    await mkdir(join(base, 'real', 'lost+found'), { recursive: true });
    await symlink(join(base, 'real'), join(base, 'link'));
    expect((await openDataDir(join(base, 'link'))).path).toBe(join(base, 'real'));
  });

  it('opens one new folder from many callers at once', async () => {
    const path = join(base, 'data');
    const opened = await Promise.all(Array.from({ length: 20 }, () => openDataDir(path)));
    expect(opened).toHaveLength(20);
    expect(await readdir(path)).toEqual(['postern-data']);
  });

  it('rejects a foreign folder and leaves it alone', async () => {
    await writeFile(join(base, 'thesis.txt'), 'mine');
    await expect(openDataDir(base)).rejects.toThrow(DataDirError);
    await expect(openDataDir(base)).rejects.toThrow(
      `${base} holds files that are not Postern's; set DATA_DIR`,
    );
    expect(await readdir(base)).toEqual(['thesis.txt']);
  });

  it.each([0o770, 0o702, 0o777, 0o1777])('rejects one that others may write to: %o', async (open) => {
    const path = join(base, 'data');
    await mkdir(path);
    await chmod(path, open);
    const rejection = `${path} may be written to by other users, who could replace its secrets; run chmod go-w on it`;
    await expect(openDataDir(path)).rejects.toThrow(DataDirError);
    await expect(openDataDir(path)).rejects.toThrow(rejection);
    expect(await readdir(path)).toEqual([]);
    // One that was ours all along, too.
    await chmod(path, 0o755);
    await openDataDir(path);
    await chmod(path, open);
    await expect(openDataDir(path)).rejects.toThrow(rejection);
  });

  it.each([
    [
      'postern-data 2\n',
      /written by a newer Postern \(layout 2, this one knows 1\); start the newer version/,
    ],
    ['hello\n', /is not a Postern marker/],
    ['', /is not a Postern marker/],
  ])('rejects the marker %j', async (content, message) => {
    await writeFile(join(base, 'postern-data'), content);
    await expect(openDataDir(base)).rejects.toThrow(message);
    await expect(openDataDir(base)).rejects.toThrow(DataDirError);
  });

  it('rejects a file, and a path through a file', async () => {
    await writeFile(join(base, 'file'), '');
    await expect(openDataDir(join(base, 'file'))).rejects.toThrow(/file is not a folder; set DATA_DIR/);
    await expect(openDataDir(join(base, 'file', 'data'))).rejects.toThrow(/is not a folder; set DATA_DIR/);
  });
});

describe('secrets', () => {
  it('generates once, then reads', async () => {
    const dir = await openDataDir(base);
    const first = await dir.secret('admin-token', () => 'generated');
    expect(first).toEqual({ value: 'generated', created: true, file: join(base, 'secrets', 'admin-token') });
    expect(await mode(first.file)).toBe('600');
    expect(await mode(join(base, 'secrets'))).toBe('700');
    const again = await dir.secret('admin-token', () => 'another');
    expect(again).toEqual({ ...first, created: false });
    expect(await readdir(join(base, 'secrets'))).toEqual(['admin-token']);
  });

  it('gives all racing callers the value of the one that created it', async () => {
    const dir = await openDataDir(base);
    const secrets = await Promise.all(
      Array.from({ length: 30 }, (_, n) => dir.secret('key', () => `value-${n}`)),
    );
    expect(new Set(secrets.map((secret) => secret.value)).size).toBe(1);
    expect(secrets.filter((secret) => secret.created)).toHaveLength(1);
  });

  it('trims the newline an editor leaves, and only that', async () => {
    const dir = await openDataDir(base);
    await mkdir(join(base, 'secrets'));
    await writeFile(join(base, 'secrets', 'token'), ' with space \r\n');
    expect((await dir.secret('token', () => '')).value).toBe(' with space ');
  });

  it('does not replace an empty file: it may have been a secret', async () => {
    const dir = await openDataDir(base);
    await mkdir(join(base, 'secrets'));
    await writeFile(join(base, 'secrets', 'token'), '\n');
    await expect(dir.secret('token', () => 'new')).rejects.toThrow(/token is empty; put the secret back/);
    expect(await readFile(join(base, 'secrets', 'token'), 'utf8')).toBe('\n');
  });

  it('takes no path for a name', async () => {
    const dir = await openDataDir(base);
    await expect(dir.secret('../token', () => 'x')).rejects.toThrow(TypeError);
  });
});

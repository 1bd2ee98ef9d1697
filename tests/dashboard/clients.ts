import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, plain } from '../support/browser.ts';
import type { RestClient } from '../support/client.ts';

/** Clients that two people work on, and clients that are there already; by keyboard alone. */
export function testClients({ world, ui, as }: Dashboard): void {
  const { api } = world;

  async function enter(page: Page, label: string, text: string): Promise<void> {
    await page.locator('main').getByLabel(label, { exact: false }).first().focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type(text);
  }

  describe('correcting a client', () => {
    it('shows both versions to whoever comes second, and saves theirs after they have looked', async () => {
      const { client_id } = await api.client({ first_name: 'Twoo', last_name: 'People', email: 'old@two.example' });
      const [first, second] = [await as('officer'), await as('admin')];
      for (const { page } of [first, second]) {
        await page.goto(ui(`/clients/${client_id}`));
        await page.getByRole('button', { name: 'Correct names or contact' }).focus();
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: 'Correct a client' }).waitFor();
      }
      await enter(first.page, 'First name', 'Two');
      await enter(first.page, 'E-mail', 'theirs@two.example');
      await first.page.keyboard.press('Enter');
      await first.page.getByText('The changes are saved.').waitFor();

      await enter(second.page, 'E-mail', 'mine@two.example');
      await second.page.keyboard.press('Enter');
      await second.page.getByText('Somebody else has changed this client').waitFor();
      const changed = second.page.getByRole('region', { name: 'Changed meanwhile' });
      expect(plain(await changed.getByRole('row', { name: 'E-mail' }).innerText()).split(/\s+/)).toEqual([
        'E-mail',
        'old@two.example',
        'theirs@two.example',
        'mine@two.example',
      ]);
      expect(await changed.getByRole('row', { name: 'First name' }).innerText()).toMatch(/Twoo\s+Two\s+not changed/);
      await expectFine(second.page, 'client-both-versions');
      expect((await api.get(`/clients/${client_id}`)).data<RestClient>()).toMatchObject({
        email: 'theirs@two.example',
      });
      await second.page.locator('main').getByLabel('E-mail').focus();
      await second.page.keyboard.press('Enter');
      await second.page.getByText('The changes are saved.').waitFor();
      expect((await api.get(`/clients/${client_id}`)).data()).toMatchObject({
        first_name: 'Two',
        email: 'mine@two.example',
      });
      expect([...first.complaints, ...second.complaints].filter((text) => !text.includes('412'))).toEqual([]);
    });
  });

  describe('notes', () => {
    it('are left on a client by keyboard and on an account by mouse, and say who wrote them; sent again there is one', async () => {
      const client = await api.client({ first_name: 'Noted', last_name: 'Down' });
      const { account_id } = await api.account(client.client_id);
      const { page, context, complaints } = await as('officer');
      await page.goto(ui(`/clients/${client.client_id}`));
      await page.getByText('Nothing has been noted yet.').waitFor();
      const sent = Object.fromEntries(
        await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('#notes form'))]"),
      );
      await page.getByLabel('New note').focus();
      await page.keyboard.type('Prefers <b>mornings</b>');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByText('The note is added.').waitFor();
      const note = page.getByRole('region', { name: 'Notes' }).getByRole('listitem');
      expect(await note.innerText()).toMatch(/^Prefers <b>mornings<\/b>\s+officer, /);
      await expectFine(page, 'client-noted');
      await context.request.post(ui(`/clients/${client.client_id}/notes`), {
        form: { ...sent, note: 'Prefers <b>mornings</b>' },
      });
      await page.goto(ui(`/clients/${client.client_id}/notes`));
      expect(await page.locator('main').getByRole('listitem').count()).toBe(1);
      await page.goto(ui(`/accounts/${account_id}`));
      await page.getByLabel('New note').fill('Statement by post');
      await page.getByRole('button', { name: 'Add the note' }).click();
      await page.getByText('The note is added.').waitFor();
      await page.getByText('Statement by post').waitFor();
      const auditor = await as('auditor');
      await auditor.page.goto(ui(`/accounts/${account_id}`));
      await auditor.page.getByText('Statement by post').waitFor();
      expect(await auditor.page.getByLabel('New note').count()).toBe(0);
      expect(complaints).toEqual([]);
    });
  });

  describe('opening a client who may be here already', () => {
    it('is warned of, and done once it was said that it is somebody else', async () => {
      const known = await api.client({ first_name: 'Here', last_name: 'Already', contact_number: '+254733444555' });
      const { page, complaints } = await as('officer');
      await page.goto(ui('/clients/new'));
      await enter(page, 'First name', 'Not');
      await enter(page, 'Last name', 'Thesame');
      await enter(page, 'E-mail', 'not@thesame.example');
      await enter(page, 'Phone', '+254 733 444 555');
      await page.keyboard.press('Enter');
      await page.getByText('Perhaps this client is here already.').waitFor();
      const row = page.getByRole('row', { name: 'Here Already' });
      expect(await row.innerText()).toMatch(/Here Already\s+phone/);
      expect(await row.getByRole('link').getAttribute('href')).toBe(`/admin/ui/clients/${known.client_id}`);
      await expectFine(page, 'client-duplicate');
      await page.getByRole('checkbox', { name: 'It is somebody else' }).focus();
      await page.keyboard.press('Space');
      await page.keyboard.press('Enter');
      await page.getByText('The client is opened.').waitFor();
      expect(complaints.filter((text) => !text.includes('409'))).toEqual([]);
    });
  });
}

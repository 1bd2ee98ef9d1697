import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, plain } from '../support/browser.ts';
import type { RestClient } from '../support/client.ts';
import { personAt, ways } from './typing.ts';

/** Tests clients that two people edit, notes on them, and clients that may already exist. */
export function testClients({ world, ui, as }: Dashboard): void {
  const { api } = world;

  describe('correcting a client', () => {
    it.each(ways)(
      'shows both versions to the second person, and saves theirs when they confirm, by $hand on a $size',
      async ({ hand, size }) => {
        const { client_id } = await api.client({ first_name: 'Twoo', last_name: 'People', email: 'old@two.example' });
        const people = [];
        for (const user of ['officer', 'admin'] as const) {
          const window = await as(user, size);
          const { enter, press, send } = personAt(window.page, hand);
          const field = (label: string) => window.page.locator('main').getByLabel(label).first();
          people.push({
            ...window,
            press,
            enter: (label: string, text: string) => enter(field(label), text),
            save: () => send(window.page.getByRole('button', { name: 'Save' })),
          });
        }
        const [first, second] = people as [(typeof people)[number], (typeof people)[number]];
        for (const { page, press } of people) {
          await page.goto(ui(`/clients/${client_id}`));
          await press(page.getByRole('button', { name: 'Correct names or contact' }));
          await page.getByRole('heading', { level: 1, name: 'Correct a client' }).waitFor();
        }
        await first.enter('First name', 'Two');
        await first.enter('E-mail', 'theirs@two.example');
        await first.save();
        await first.page.getByText('The changes are saved.').waitFor();

        await second.enter('E-mail', 'mine@two.example');
        await second.save();
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
        await second.enter('E-mail', 'mine@two.example');
        await second.save();
        await second.page.getByText('The changes are saved.').waitFor();
        expect((await api.get(`/clients/${client_id}`)).data()).toMatchObject({
          first_name: 'Two',
          email: 'mine@two.example',
        });
        expect([...first.complaints, ...second.complaints].filter((text) => !text.includes('412'))).toEqual([]);
      },
    );
  });

  describe('notes', () => {
    it.each(ways)(
      'are added to a client and to an account, and name their author, by $hand on a $size',
      async ({ hand, size }) => {
        const client = await api.client({ first_name: 'Noted', last_name: 'Down' });
        const { account_id } = await api.account(client.client_id);
        const { page, context, complaints } = await as('officer', size);
        const { enter, press } = personAt(page, hand);
        const write = async (text: string) => {
          await enter(page.getByLabel('New note'), text);
          await press(page.getByRole('button', { name: 'Add the note' }));
          await page.getByText('The note is added.').waitFor();
        };
        await page.goto(ui(`/clients/${client.client_id}`));
        await page.getByText('Nothing has been noted yet.').waitFor();
        const sent = Object.fromEntries(
          await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('#notes form'))]"),
        );
        await write('Prefers <b>mornings</b>');
        const note = page.getByRole('region', { name: 'Notes' }).getByRole('listitem');
        expect(await note.innerText()).toMatch(/^Prefers <b>mornings<\/b>\s+Olivia Officer, /);
        await expectFine(page, 'client-noted');
        // A browser sends the form like this when a user sends it again.
        await context.request.post(ui(`/clients/${client.client_id}/notes`), {
          form: { ...sent, note: 'Prefers <b>mornings</b>' },
        });
        await page.goto(ui(`/clients/${client.client_id}/notes`));
        expect(await page.locator('main').getByRole('listitem').count()).toBe(1);
        await page.goto(ui(`/accounts/${account_id}`));
        await write('Statement by post');
        await page.getByText('Statement by post').waitFor();
        const auditor = await as('auditor');
        await auditor.page.goto(ui(`/accounts/${account_id}`));
        await auditor.page.getByText('Statement by post').waitFor();
        expect(await auditor.page.getByLabel('New note').count()).toBe(0);
        expect(complaints).toEqual([]);
      },
    );
  });

  describe('creating a client who may already exist', () => {
    it.each(ways)(
      'causes a warning, and is done when the clerk confirms that it is another person, by $hand on a $size',
      async ({ hand, size }) => {
        const phone = `+2547${String(Date.now()).slice(-8)}`;
        const known = await api.client({ first_name: 'Here', last_name: 'Already', contact_number: phone });
        const { page, complaints } = await as('officer', size);
        const { enter, press, send } = personAt(page, hand);
        const save = page.getByRole('button', { name: 'Create the client' });
        await page.goto(ui('/clients/new'));
        for (const [label, text] of [
          ['First name', 'Not'],
          ['Last name', `Thesame${hand}${size}`],
          ['E-mail', `${hand}.${size}@thesame.example`],
          ['Phone', phone],
        ] as const)
          await enter(page.locator('main').getByLabel(label).first(), text);
        await send(save);
        await page.getByText('This client may already exist.').waitFor();
        const row = page.getByRole('row', { name: 'Here Already' });
        expect(await row.innerText()).toMatch(/Here Already\s+phone/);
        expect(await row.getByRole('link').getAttribute('href')).toBe(`/admin/ui/clients/${known.client_id}`);
        await expectFine(page, 'client-duplicate');
        await press(page.getByRole('button', { name: 'It is somebody else: create the client' }));
        await page.getByText('The client was created.').waitFor();
        expect(complaints.filter((text) => !text.includes('409'))).toEqual([]);
      },
    );
  });
}

import { describe, expect, it } from 'vitest';
import { html } from './html.ts';

describe('html', () => {
  it('escapes what is put into text and attributes', () => {
    const evil = `"><script>alert('&')</script>`;
    expect(html`<p title="${evil}">${evil}</p>`.text).toBe(
      '<p title="&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;">&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</p>',
    );
  });

  it('takes markup of other templates, and lists of it, as they are', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`);
    expect(html`<ul>${items}</ul>`.text).toBe('<ul><li>a</li><li>&lt;b&gt;</li></ul>');
  });

  it('escapes texts in lists too', () => {
    expect(html`${['<', ['&']]}`.text).toBe('&lt;&amp;');
  });

  it('shows nothing for what is absent or false, and zero as zero', () => {
    expect(html`${undefined}${null}${false}${0}${10n}${''}`.text).toBe('010');
  });

  it('trusts nothing that only looks like markup', () => {
    expect(html`${{ text: '<i>' } as never}`.text).toBe('[object Object]');
  });
});

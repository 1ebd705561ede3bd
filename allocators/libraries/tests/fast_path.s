# Functions that take as many instructions as their names say, given a block.

    .text

    .globl give_4, give_5, take_6, take_8
    .type give_4, @function
    .type give_5, @function
    .type take_6, @function
    .type take_8, @function

give_5:
    nop
give_4:
    lea block(%rip), %rax
    nop
    nop
    ret

# Every fourth call takes a slow path, of more.
take_6:
    incl calls(%rip)
    testl $3, calls(%rip)
    jne 1f
    nop
    nop
1:  nop
    nop
    ret

# Given null, it would return after three. What it calls counts.
take_8:
    test %rdi, %rdi
    je 1f
    call helper
    nop
    nop
1:  ret

helper:
    nop
    ret

    .bss
    .align 16
block:
    .skip 64
calls:
    .skip 4

    .section .note.GNU-stack, "", @progbits
